"""Tasks from git repositories."""
