"""What runs inside a box, as its first process; the standard library only.

`wire`, `sending` and `receiving` serve our side as well.
"""
