"""Rollouts of a job that learn from each other: `job_mode: sequential-shared`."""
