"""Providers and boxes of sandbox plugins as the core holds them: what they do wrong names the plugin."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from benchflow_core.contracts.common import Layer, Runtime
from benchflow_core.contracts.sandboxes import ExecResult, ImageRef, ImageRequest, Sandbox, StartRequest
from benchflow_core.plugins.guard import Guarded, wrong_type

__all__ = ["GuardedProvider"]


_NEEDED = ("info", "exec", "upload", "download", "stop")
"""Of every box; one may leave out what it does not declare."""


class GuardedProvider(Guarded):
    """Satisfies `contracts.SandboxProvider`."""

    async def prepare(
        self, request: ImageRequest, layers: Sequence[Layer] = (), runtimes: Sequence[Runtime] = ()
    ) -> ImageRef:
        image = await self._call("prepare", request, layers, runtimes)
        if not isinstance(image, ImageRef):
            raise wrong_type(self._who, "prepare", image, ImageRef)
        return image

    async def start(self, image: ImageRef, request: StartRequest) -> Sandbox:
        box = await self._call("start", image, request)
        if not all(hasattr(box, name) for name in _NEEDED):
            raise wrong_type(self._who, "start", box, Sandbox)
        return cast("Sandbox", _GuardedBox(box, self._who))


class _GuardedBox(Guarded):
    """Satisfies `contracts.Sandbox`."""

    async def exec(self, argv: Sequence[str], **how: Any) -> ExecResult:
        done = await self._call("exec", argv, **how)
        if not isinstance(done, ExecResult):
            raise wrong_type(self._who, "exec", done, ExecResult)
        return done
