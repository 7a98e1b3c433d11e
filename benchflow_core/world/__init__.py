"""What is left of the environment plane in the core: the shape of the setting `state`, and forwarded ports."""
