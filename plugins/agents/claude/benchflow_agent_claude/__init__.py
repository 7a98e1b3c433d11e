"""Claude Code over ACP, pinned, with a Node of its own."""
