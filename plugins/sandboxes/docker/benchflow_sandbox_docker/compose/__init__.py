"""Compose tasks: several services from one file, driven through the engine's API."""
