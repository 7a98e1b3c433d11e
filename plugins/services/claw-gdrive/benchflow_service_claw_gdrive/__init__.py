"""A Google Drive that one process and one SQLite file hold."""
