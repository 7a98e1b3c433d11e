"""A library for sandbox plugins whose boxes run at somebody else's: one supervisor in the box, one stream to it."""
