"""Reads Harbor task folders and BenchFlow task.md documents unchanged."""
