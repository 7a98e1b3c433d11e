"""A gateway that passes model traffic through unchanged and records it."""
