"""Loop strategies as drivers."""
