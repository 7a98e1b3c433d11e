"""The agent's state, captured once: the snapshot, what it changed, and the ports that its servers listen on."""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from benchflow_core.contracts import Capability, Change, IsolationRequest, Snapshot
from benchflow_core.errors import InfrastructureError

__all__ = ["Captured", "capture"]


@dataclass(frozen=True, slots=True)
class Captured:
    """One state that readings are made of."""

    snapshot: Snapshot
    changes: tuple[Change, ...]
    ports: tuple[int, ...]


async def capture(request: IsolationRequest) -> Captured:
    """Take the snapshot. What the agent left running goes on in its own box."""
    listening = await request.sandbox.listening() if Capability.PORTS in request.capabilities else []
    snapshot = await request.sandbox.snapshot(f"verify-{secrets.token_hex(4)}")
    if snapshot.changes is None:
        await request.provider.forget(snapshot)
        raise InfrastructureError("the sandbox declares 'changes', but its snapshot does not list them.")
    return Captured(snapshot, snapshot.changes, tuple(port for port in listening if port not in request.service_ports))
