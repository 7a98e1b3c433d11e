"""Rollouts of a job in several processes of this host."""
