"""`fresh`: a box of the verifier's own on a snapshot of the agent's files."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace

from benchflow_core.verify.arrange import arrange
from benchflow_core.verify.boxes import Ready, end_box, pinned_env
from benchflow_core.verify.capture import Captured, capture
from benchflow_core.verify.findings import Finding
from benchflow_core.verify.request import VerifyRequest
from benchflow_core.world.forward import forwarded
from benchflow_core.world.sockets import shown_sockets

__all__ = ["FreshBox"]


class FreshBox:
    repeatable = True

    def __init__(self, request: VerifyRequest) -> None:
        self.request = request
        self.findings: list[Finding] = []
        self._state: Captured | None = None

    async def open(self) -> None:
        self._state = await capture(self.request)
        self.findings += self._state.findings

    @contextlib.asynccontextmanager
    async def box(self) -> AsyncIterator[Ready]:
        request, state = self.request, self._state
        assert state is not None
        start = replace(
            request.start,
            workdir=request.workdir,
            network=request.settings.network or request.start.network,
            revert=tuple(state.plan.revert),
        )
        box = await request.provider.start(state.snapshot.image, start)
        try:
            ready = Ready(box, pinned_env(request, request.image, start), request.workdir)
            await arrange(state, ready, network=start.network.mode != "none")
            async with forwarded(request.sandbox, box, state.ports, request.image.runtimes) as ports:
                why = "the sandbox cannot show a port of one box in another"
                lost = [port for port in state.ports if port not in ports]
                ready.findings += [Finding("port-not-forwarded", f"tcp/{port}", "noted", why) for port in lost]
                async with shown_sockets(request.sandbox, box, state.sockets, request.image.runtimes):
                    yield ready
        finally:
            await end_box(request, box)

    async def close(self) -> None:
        if self._state is not None:
            await self.request.provider.forget(self._state.snapshot)
