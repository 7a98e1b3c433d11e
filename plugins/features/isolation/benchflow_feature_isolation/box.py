"""The agent's state, captured once, and boxes of the verifier's own on it, each with some of the changes undone."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from benchflow_core.contracts import Capability, Change, IsolationRequest, Sandbox, Snapshot, VerifyBox
from benchflow_core.errors import InfrastructureError, SandboxLost, VerifierError
from benchflow_feature_isolation.clean import Undo
from benchflow_feature_isolation.origin import Places, ancestors

__all__ = ["CapturedState", "ReadingBox", "capture", "port_name"]

_EVERY: Final = 0.01  # a test may listen for a moment only


def port_name(port: int) -> str:
    return f"tcp/{port}"


@dataclass(frozen=True, slots=True)
class CapturedState:
    """One state that readings are made of."""

    snapshot: Snapshot
    changes: tuple[Change, ...]
    ports: tuple[int, ...]


async def capture(request: IsolationRequest) -> CapturedState:
    """Take the snapshot. What the agent left running goes on in its own box."""
    listening = await request.sandbox.listening() if Capability.PORTS in request.capabilities else []
    snapshot = await request.sandbox.snapshot(f"verify-{secrets.token_hex(4)}")
    if snapshot.changes is None:
        await request.provider.forget(snapshot)
        raise InfrastructureError("the sandbox declares 'changes', but its snapshot does not list them.")
    return CapturedState(
        snapshot, snapshot.changes, tuple(port for port in listening if port not in request.service_ports)
    )


@dataclass(frozen=True, slots=True)
class ReadingBox:
    """Starts boxes for readings of one captured state."""

    request: IsolationRequest
    state: CapturedState
    places: Places
    always: tuple[str, ...]
    """Undone in every reading."""

    @contextlib.asynccontextmanager
    async def open(self, undos: Sequence[Undo], listened: set[int] | None = None) -> AsyncIterator[VerifyBox]:
        """A box with these changes undone. `listened` gets every port that was listened on in it."""
        request, paths = self.request, dict.fromkeys([*self.always, *(u.path for u in undos if u.reverts)])
        start = replace(
            request.start,
            workdir=request.workdir,
            network=request.settings.network or request.start.network,
            revert=tuple(path for path in paths if path != "/" and not any(a in paths for a in ancestors(path))),
        )
        left_out = {undo.path for undo in undos}
        async with request.box(self.state.snapshot.image, start) as box, _watch(box, listened):
            await self._give(box, list(paths))
            yield VerifyBox(
                box,
                request.image,
                start,
                request.workdir,
                env={name: value for undo in undos for name, value in undo.env.items()},
                ports=tuple(port for port in self.state.ports if port_name(port) not in left_out),
            )

    async def _give(self, box: Sandbox, undone: Sequence[str]) -> None:
        """Files of the task's own that were undone are the task's again."""
        try:
            for path in undone:
                if path in self.places.given:
                    await box.upload(self.places.given[path], path)
        except SandboxLost:
            raise
        except InfrastructureError as error:
            raise VerifierError(f"the task's files cannot be laid into what the agent left: {error.message}") from error


@contextlib.asynccontextmanager
async def _watch(box: Sandbox, listened: set[int] | None) -> AsyncIterator[None]:
    """Collect the ports that are listened on while it is open."""

    async def look() -> None:
        while listened is not None:
            with contextlib.suppress(InfrastructureError):
                listened.update(await box.listening())
            await asyncio.sleep(_EVERY)

    watcher = asyncio.create_task(look())
    try:
        yield
    finally:
        watcher.cancel()
        await asyncio.gather(watcher, return_exceptions=True)
