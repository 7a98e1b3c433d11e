"""Rows as the Web API shows them."""
