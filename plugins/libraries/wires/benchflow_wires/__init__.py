"""Connections between this host and boxes: a server of the host inside a box, and servers of one box in another."""

from __future__ import annotations

from benchflow_wires.forward import forwarded
from benchflow_wires.tunnel import Tunnel

__all__ = ["Tunnel", "forwarded"]
