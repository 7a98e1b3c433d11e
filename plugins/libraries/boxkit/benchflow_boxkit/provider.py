"""A provider for any vendor that can build a Dockerfile, start a box, and carry the streams of one command."""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from benchflow_boxkit import leases, package
from benchflow_boxkit.accounts import MARK, Account
from benchflow_boxkit.layering import require_runtimes
from benchflow_boxkit.locks import file_lock
from benchflow_boxkit.pacing import Pace
from benchflow_boxkit.recipe import Recipe, compose
from benchflow_boxkit.sandbox import BoxSandbox, Machine, Tools, open_channel, require_known
from benchflow_boxkit.snapshots import Indexes, Snapshots
from benchflow_core.contracts.common import Layer, Runtime
from benchflow_core.contracts.sandboxes import (
    ImageRef,
    ImageRequest,
    NetworkPolicy,
    Resources,
    SandboxContext,
    Snapshot,
    StartRequest,
)

__all__ = ["BoxProvider", "Vendor"]

_PROBE_TERM = 1800.0


class Vendor(Protocol):
    """What a plugin writes. Every method raises the narrowest class of `benchflow_core.errors`."""

    name: str
    """As in messages and as a folder's name: `daytona`."""
    account: Account
    """Lists and removes what of ours is there; closed with the provider."""
    creates_at_once: int
    create_tries: int
    """How many requests for boxes are under way together, and how often one is tried."""
    # shut_ports: tuple[int, ...], where there are some: of servers in every box that do whatever a program asks them.

    async def find_image(self, recipe: Recipe) -> str | None:
        """The vendor's name for the image with this key, if it is there and usable."""

    def image_notices(self, recipe: Recipe) -> tuple[str, ...]:
        """What the user should know of how this vendor makes it."""

    async def build_image(self, recipe: Recipe, context: Path) -> str:
        """Build `recipe.text`, which is also the file `recipe.DOCKERFILE` of this folder. `BuildError` with the log."""

    async def start(
        self, image: str, request: StartRequest, policy: NetworkPolicy, labels: Mapping[str, str]
    ) -> Machine:
        """Send one request to the vendor; the caller repeats it. On failure or cancellation nothing of it is left."""


class BoxProvider:
    def __init__(self, context: SandboxContext, vendor: Vendor) -> None:
        self._context, self._vendor = context, vendor
        self._env = dict(context.env or os.environ)
        self._indexes = Indexes(context.cache_dir, vendor.name)
        self._snapshots = Snapshots(context.work_dir, vendor.name, context.labels)
        shut = tuple(getattr(vendor, "shut_ports", ()))
        self._tools = Tools(self._indexes, self._snapshots, self._start, self._forget, shut)
        self._creating = Pace(vendor.creates_at_once, tries=vendor.create_tries)
        self._building = asyncio.Semaphore(max(1, context.build_concurrency))
        self._making: dict[str, asyncio.Lock] = {}
        self._ready: dict[str, str] = {}
        self._boxes: set[BoxSandbox] = set()
        self._sweeping: asyncio.Task[None] | None = None

    # --- images ----------------------------------------------------------------------------------------------------

    async def prepare(
        self, request: ImageRequest, layers: Sequence[Layer] = (), runtimes: Sequence[Runtime] = ()
    ) -> ImageRef:
        self._sweep()
        require_runtimes(runtimes, layers)
        recipe = await asyncio.to_thread(compose, request, layers, self._env)
        locks = self._context.cache_dir / self._vendor.name / "locks"
        async with self._making.setdefault(recipe.key, asyncio.Lock()):
            if recipe.key not in self._ready or self._indexes.find(recipe.key) is None:
                async with file_lock(locks / recipe.key):
                    self._ready[recipe.key] = await self._make(recipe)
        return self._reference(recipe, self._ready[recipe.key])

    async def _make(self, recipe: Recipe) -> str:
        image = await self._creating.run(lambda: self._vendor.find_image(recipe))
        if image is None:
            async with self._building:
                image = await self._build(recipe)
        if self._indexes.find(recipe.key) is None:
            await self._look(recipe, image)
        return image

    async def _build(self, recipe: Recipe) -> str:
        folder = self._context.work_dir / f"build-{secrets.token_hex(6)}"
        try:
            await asyncio.to_thread(recipe.write, folder, self._context.cache_dir)
            return await self._creating.run(lambda: self._vendor.build_image(recipe, folder))
        finally:
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)

    async def _look(self, recipe: Recipe, image: str) -> None:
        """Once per image and host, in a box where nothing runs: its files, variables, directory and user."""
        request = StartRequest(name=f"look-{recipe.key}", resources=Resources(), expires_after=_PROBE_TERM)
        machine = await self._create(image, request, NetworkPolicy("none"))
        try:
            channel = await open_channel(machine, f"A box on {recipe.name}")
            try:
                skip = [layer.prefix for layer in recipe.layers]
                answer = await channel.call("begin", workdir="", skip=skip)
                await self._indexes.take(recipe.key, channel, answer["image"])
            finally:
                await channel.close()
        finally:
            await asyncio.shield(machine.delete())

    def _reference(self, recipe: Recipe, image: str) -> ImageRef:
        known = self._indexes.find(recipe.key)
        found: Mapping[str, Any] = known[0] if known else {}
        return ImageRef(
            ref=f"{self._vendor.name}:{recipe.key}",
            fidelity="substituted" if recipe.substituted else "exact",
            digest=recipe.key,
            workdir=str(found.get("workdir") or "/"),
            env=dict(found.get("env") or {}),
            user=found.get("user"),
            runtimes={"python": package.PYTHON},
            notices=(*filter(None, [recipe.substituted]), *self._vendor.image_notices(recipe)),
            meta={"image": image, "index": recipe.key, "layers": [layer.prefix for layer in recipe.layers]},
        )

    # --- boxes -----------------------------------------------------------------------------------------------------

    async def start(self, image: ImageRef, request: StartRequest) -> BoxSandbox:
        self._sweep()
        require_known(image, self._vendor.name)
        box = BoxSandbox(self._tools, image, request, self._env)
        self._boxes.add(box)
        try:
            await box.begin(request.revert)
        except BaseException:
            await asyncio.shield(box.stop())
            raise
        return box

    async def _start(self, image: ImageRef, request: StartRequest, policy: NetworkPolicy) -> Machine:
        return await self._create(str(image.meta["image"]), request, policy)

    async def _create(self, image: str, request: StartRequest, policy: NetworkPolicy) -> Machine:
        # Where only some hosts are allowed the box is cut off, and our proxy is its one way out.
        reach = NetworkPolicy("none") if policy.mode == "allowlist" else policy
        mine = {**self._context.labels, **request.labels}
        marks = {MARK: "1", **leases.labels("box", mine, expires_after=request.expires_after)}
        return await self._creating.run(lambda: self._vendor.start(image, request, reach, marks))

    def _forget(self, box: BoxSandbox) -> None:
        self._boxes.discard(box)

    def _sweep(self) -> None:
        """Remove what killed runs left, once per job. What fails here does not fail the job."""
        if self._sweeping is None:
            self._sweeping = asyncio.ensure_future(self._vendor.account.remove_dead())

    async def forget(self, snapshot: Snapshot) -> None:
        await self._snapshots.forget(snapshot)

    async def close(self) -> None:
        await asyncio.gather(*(box.stop() for box in list(self._boxes)), return_exceptions=True)
        await self._snapshots.close()
        if self._sweeping is not None:
            await asyncio.gather(self._sweeping, return_exceptions=True)
        await self._vendor.account.close()
