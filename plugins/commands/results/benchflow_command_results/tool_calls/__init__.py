"""Tool calls as lines and as a panel."""
