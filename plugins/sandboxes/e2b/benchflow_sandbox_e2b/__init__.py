"""Rollouts in E2B's cloud sandboxes."""
