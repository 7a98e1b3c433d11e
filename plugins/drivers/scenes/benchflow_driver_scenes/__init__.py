"""Drivers: scenes of several roles, and loop strategies."""
