"""`bench plugins new`: a complete plugin package from a template."""
