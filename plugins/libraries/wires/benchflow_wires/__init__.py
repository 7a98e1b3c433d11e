"""Connections between this host and a box, over the standard streams of one process there."""

from __future__ import annotations

from benchflow_wires.tunnel import Tunnel

__all__ = ["Tunnel"]
