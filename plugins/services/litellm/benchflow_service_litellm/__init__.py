"""A gateway that translates between model APIs: the relay in front and behind, the LiteLLM proxy in between."""
