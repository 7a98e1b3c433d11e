"""Rollouts in containers of a Docker engine."""
