"""One reading: a box of the verifier's own on the snapshot, with some of the agent's changes undone."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import Final

from benchflow_core.contracts.sandboxes import Sandbox
from benchflow_core.errors import InfrastructureError, SandboxLost, VerifierError
from benchflow_core.quick import dataclass
from benchflow_core.verify.boxes import Ready, end_box, pinned_env
from benchflow_core.verify.capture import Captured
from benchflow_core.verify.findings import Finding
from benchflow_core.verify.fresh.clean import Undo
from benchflow_core.verify.fresh.origin import Places, ancestors
from benchflow_core.verify.ready import make_ready
from benchflow_core.verify.request import VerifyRequest
from benchflow_core.world.forward import forwarded

__all__ = ["ReadingBox", "port_name"]

_EVERY: Final = 0.1
_LOST: Final = "the sandbox cannot show a port of one box in another"


def port_name(port: int) -> str:
    return f"tcp/{port}"


@dataclass(frozen=True, slots=True)
class ReadingBox:
    """Starts boxes for readings of one captured state."""

    request: VerifyRequest
    state: Captured
    places: Places
    always: tuple[str, ...]
    """Undone in every reading."""

    @contextlib.asynccontextmanager
    async def open(self, undos: Sequence[Undo], listened: set[int] | None = None) -> AsyncIterator[Ready]:
        """A box with these changes undone. `listened` gets every port that was listened on in it."""
        request, state = self.request, self.state
        paths = dict.fromkeys([*self.always, *(undo.path for undo in undos if undo.reverts)])
        start = replace(
            request.start,
            workdir=request.workdir,
            network=request.settings.network or request.start.network,
            revert=tuple(path for path in paths if path != "/" and not any(a in paths for a in ancestors(path))),
        )
        box = await request.provider.start(state.snapshot.image, start)
        try:
            env = pinned_env(request, request.image, start)
            for undo in undos:
                env |= undo.env
            ready = Ready(box, env, request.workdir)
            await self._prepare(ready, list(paths))
            left_out = {undo.path for undo in undos}
            wanted = [port for port in state.ports if port_name(port) not in left_out]
            async with forwarded(request.sandbox, box, wanted, request.image.runtimes) as ports, _watch(box, listened):
                lost = [port for port in wanted if port not in ports]
                ready.findings += [Finding("port-not-forwarded", port_name(port), "noted", _LOST) for port in lost]
                yield ready
        finally:
            await end_box(request, box)

    async def _prepare(self, ready: Ready, undone: Sequence[str]) -> None:
        """New folders; and files of the task's own that were undone are the task's again."""
        try:
            await make_ready(ready.box, (self.places.logs,), ready.workdir)
            for path in undone:
                if path in self.places.given:
                    await ready.box.upload(self.places.given[path], path)
        except SandboxLost:
            raise
        except InfrastructureError as error:
            raise VerifierError(
                f"the verifier's box on the agent's files could not be made ready: {error.message}"
            ) from error


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
