"""A reviewer as an MCP server."""
