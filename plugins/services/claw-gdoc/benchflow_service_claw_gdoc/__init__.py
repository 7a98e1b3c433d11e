"""A Google Docs that one process and one SQLite file hold."""
