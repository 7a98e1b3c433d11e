"""Commands for authors of tasks, agents and plugins."""
