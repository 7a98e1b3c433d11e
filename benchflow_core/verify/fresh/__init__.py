"""`fresh`: the verifier in a box of its own on a snapshot of the agent's files, read as left and, where that could have
been steered, once more with those changes undone."""

from __future__ import annotations

from benchflow_core.verify.fresh.readings import verify_fresh

__all__ = ["verify_fresh"]
