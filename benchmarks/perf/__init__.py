"""What BenchFlow itself costs, measured as ratios within one run: `python -m benchmarks.perf --help`."""
