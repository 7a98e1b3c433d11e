"""Features that come with BenchFlow, a folder each."""
