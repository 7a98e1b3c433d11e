"""Rollouts in Daytona's cloud sandboxes."""
