"""The agent's state, captured once: the snapshot, what it changed, and the ports that its servers listen on."""

from __future__ import annotations

import secrets

from benchflow_core.contracts.common import Capability
from benchflow_core.contracts.sandboxes import Change, Snapshot
from benchflow_core.errors import InfrastructureError
from benchflow_core.quick import dataclass
from benchflow_core.verify.findings import Finding
from benchflow_core.verify.request import VerifyRequest

__all__ = ["Captured", "capture"]


@dataclass(frozen=True, slots=True)
class Captured:
    snapshot: Snapshot
    changes: tuple[Change, ...]
    ports: list[int]
    findings: tuple[Finding, ...] = ()


async def capture(request: VerifyRequest) -> Captured:
    """Take the snapshot. What the agent left running goes on in its own box."""
    ports = await _agents_ports(request) if Capability.PORTS in request.capabilities else []
    snapshot = await request.sandbox.snapshot(f"verify-{secrets.token_hex(4)}")
    if snapshot.changes is None:
        await request.provider.forget(snapshot)
        raise InfrastructureError("the sandbox declares 'changes', but its snapshot does not list them.")
    return Captured(snapshot, snapshot.changes, ports)


async def _agents_ports(request: VerifyRequest) -> list[int]:
    """The world's own ports come from the world: what an agent serves there instead is not carried over."""
    worlds = request.world.ports if request.world else ()
    return [port for port in await request.sandbox.listening() if port not in worlds]
