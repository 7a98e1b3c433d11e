"""Rollouts in Modal's cloud sandboxes."""
