"""Lets a model say of each criterion whether what the agent wrote meets it."""
