"""OpenCode over ACP, pinned."""
