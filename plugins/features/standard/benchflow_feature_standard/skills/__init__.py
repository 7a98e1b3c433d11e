"""Skills for agents: folders with a `SKILL.md`, brought to them, kept from them, or written by themselves."""
