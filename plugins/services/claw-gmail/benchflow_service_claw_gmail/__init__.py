"""A mock Gmail: the mailbox of one or more users behind the routes of the real API."""
