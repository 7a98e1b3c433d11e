"""The provider: images are refused or substituted by this machine, boxes are folders."""

from __future__ import annotations

import asyncio
import os
import sys
import uuid
from collections.abc import Sequence
from pathlib import Path

from benchflow_core.contracts import ImageRef, ImageRequest, Layer, Runtime, SandboxContext, Snapshot, StartRequest
from benchflow_core.errors import BuildError, CapabilityMissing, SandboxStartError

from {{module}} import leases
from {{module}}.box import Box

IMAGE = "this-machine"


class Provider:
    def __init__(self, context: SandboxContext) -> None:
        self._labels = context.labels
        self._boxes: dict[str, Box] = {}

    async def prepare(
        self, request: ImageRequest, layers: Sequence[Layer] = (), runtimes: Sequence[Runtime] = ()
    ) -> ImageRef:
        wanted = request.image or request.dockerfile or request.compose
        if wanted is not None and not request.allow_substitute:
            raise BuildError(f"{wanted} cannot be had: this sandbox builds no images.", remedy="Allow a substitute.")
        if layers:
            raise CapabilityMissing(f"Layer {layers[0].key} needs a path of its own; this sandbox is a plain folder.")
        unknown = [r.name for r in runtimes if r.name != "python"]
        if unknown:
            raise CapabilityMissing(f"No runtime {unknown[0]!r} here.")
        notices = (f"{wanted} substituted by this machine",) if wanted is not None else ()
        return ImageRef(
            ref=IMAGE,
            fidelity="substituted" if notices else "exact",
            runtimes={"python": sys.executable},
            notices=notices,
        )

    async def start(self, image: ImageRef, request: StartRequest) -> Box:
        if image.ref != IMAGE:
            raise SandboxStartError(f"Unknown image {image.ref!r}.", retryable=False)
        identity = uuid.uuid4().hex
        folder = leases.create(identity, {**self._labels, **request.labels}, request.expires_after)
        env = {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": str(folder / "work"),
            "LANG": "C.UTF-8",
            **image.env,
            **request.env,
        }
        workdir = Path(request.workdir or folder / "work")
        workdir.mkdir(parents=True, exist_ok=True)
        self._boxes[identity] = Box(identity, folder, str(workdir), env)
        return self._boxes[identity]

    async def forget(self, snapshot: Snapshot) -> None:
        """There are no snapshots to remove."""

    async def close(self) -> None:
        await asyncio.gather(*(box.stop() for box in self._boxes.values()))
        self._boxes.clear()
