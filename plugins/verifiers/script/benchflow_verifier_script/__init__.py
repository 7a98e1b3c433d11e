"""Runs a task's test script and reads its reward."""
