"""The pi coding agent over ACP, pinned, with a Node of its own."""
