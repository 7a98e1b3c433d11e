"""Rollouts of a job in several processes of this host, and worker processes for other executors."""
