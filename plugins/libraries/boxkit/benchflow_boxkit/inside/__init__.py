"""What runs inside a box; the standard library only.

`wire`, `sending`, `receiving` and `link` serve the host's side as well.
"""
