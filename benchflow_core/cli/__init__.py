"""The bench command."""
