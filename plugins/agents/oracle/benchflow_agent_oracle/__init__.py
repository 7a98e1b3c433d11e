"""Agents that need no model: oracle plays the reference solution, nop does nothing."""
