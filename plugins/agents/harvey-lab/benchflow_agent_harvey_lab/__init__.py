"""The Harvey LAB harness for BenchFlow."""
