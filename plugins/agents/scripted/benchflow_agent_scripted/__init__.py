"""A real ACP agent that plays a YAML script; stands in for a paid model in tests and examples."""
