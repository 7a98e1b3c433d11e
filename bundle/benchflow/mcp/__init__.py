"""MCP servers that BenchFlow offers to agents."""
