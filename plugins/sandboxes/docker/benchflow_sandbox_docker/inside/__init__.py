"""What runs inside a box, as its first process, upon `benchflow_boxkit.inside`; the standard library only."""
