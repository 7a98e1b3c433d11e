"""OpenHands for BenchFlow."""
