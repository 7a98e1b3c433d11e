"""OpenClaw for BenchFlow."""
