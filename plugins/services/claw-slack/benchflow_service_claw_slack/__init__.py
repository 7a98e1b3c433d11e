"""A Slack workspace that one process and one SQLite file hold."""
