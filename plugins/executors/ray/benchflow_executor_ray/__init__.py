"""Rollouts of a job on a Ray cluster."""
