"""Environments that speak the Open Reward Standard, as tasks."""
