"""Verification by readings: the agent's files as left, and once more without what could steer the tests."""
