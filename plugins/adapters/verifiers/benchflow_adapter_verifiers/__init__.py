"""Environments of PrimeIntellect Verifiers as tasks."""
