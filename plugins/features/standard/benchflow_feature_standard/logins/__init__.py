"""Logins of this host for agents: `--auth native`."""
