"""Agents that are named by what they run: a command line, or a TOML file."""
