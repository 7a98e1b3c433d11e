"""Runs any agent through acpx."""
