"""What the provider, the builder and the boxes share: the helper process, the layers on disk, starting, ending."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import secrets
import socket
from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, Final

from benchflow_boxkit.channel import Channel
from benchflow_boxkit.inside import wire
from benchflow_boxkit.socketline import SocketLine

from benchflow_core.contracts.quick import dataclass
from benchflow_core.contracts.sandboxes import NetworkPolicy, SandboxContext
from benchflow_core.errors import (
    BenchflowError,
    CapabilityMissing,
    ConfigurationError,
    InfrastructureError,
    SandboxLost,
    SandboxStartError,
)
from benchflow_sandbox_local import base, host, leases, limits, probe, spread
from benchflow_sandbox_local.client import Helper
from benchflow_sandbox_local.plainplan import plain_plan
from benchflow_sandbox_local.plan import Layout, Mounts

__all__ = ["SNAPSHOTS", "Engine", "Layering", "StartedBox"]

SNAPSHOTS: Final = "snaps/"
"""How the names of captured layers begin."""

_START_SECONDS: Final = 30.0
_PLAIN_PATH: Final = re.compile(r"[\w./+@%=:,-]+")
_USUAL: Final[dict[str, Any]] = {"own_network": True, "cgroups": [], "hostname": "box"}
_FOLDERS: Final = ("boxes", "images", "layers", "snaps", "points", "locks", "stage", "base", "trash")


@dataclass(frozen=True, slots=True)
class Layering:
    """The layers of an image: what `ImageRef.meta` carries."""

    layers: tuple[str, ...] = ()
    """Below the state directory, topmost first."""
    shown: Mapping[str, str] = field(default_factory=dict)
    """Path in the box to a read-only source."""
    repositories: tuple[str, ...] = ()
    """The `objects` directories of git in the layers, as paths in the box."""
    places: tuple[str, ...] = ()
    """At stage 3: paths that are the box's own beside the usual ones."""

    @classmethod
    def of(cls, meta: Mapping[str, Any]) -> Layering:
        layers, repositories = tuple(meta.get("layers", ())), tuple(meta.get("repositories", ()))
        return cls(layers, dict(meta.get("shown", {})), repositories, tuple(meta.get("places", ())))

    @property
    def on_snapshot(self) -> bool:
        return bool(self.layers) and self.layers[0].startswith(SNAPSHOTS)

    def meta(self) -> dict[str, Any]:
        lists = {name: list(getattr(self, name)) for name in ("layers", "repositories", "places")}
        return {**lists, "shown": dict(self.shown)}


@dataclass(slots=True)
class StartedBox:
    """A box as the helper knows it."""

    id: str
    channel: Channel
    mounts: Mounts
    lease: Path
    notes: tuple[str, ...]
    users: tuple[str, ...]
    workdir: str | None
    """Where programs find the working directory, if not by its name."""


class _ReadyMessage:
    """What a new box says first: that it is ready, or why not."""

    def __init__(self, channel: Channel) -> None:
        self.said: asyncio.Future[wire.Message] = asyncio.get_running_loop().create_future()
        channel.on_event = self._say
        channel.on_lost.append(lambda: self._say({"event": "lost"}))

    def _say(self, event: wire.Message) -> None:
        if not self.said.done():
            self.said.set_result(event)


class Engine:
    layout: Layout

    def __init__(self, context: SandboxContext) -> None:
        self.context = context
        self.state = Path(context.options.get("dir") or context.cache_dir) / "sandbox-local"
        self.facts: dict[str, Any] = {}
        wanted = probe.forced_stage(context.options.get("stage"))
        self.plain = (wanted or probe.facts().stage) == 3
        """No namespaces here: stage 3."""
        self.python = host.find_python(visible=self.plain)
        self._helper: Helper | None = None
        self._opening = asyncio.Lock()
        self._closed = False
        self.hierarchies = limits.find()
        self.snapshots: dict[str, bool] = {}
        """Layers captured here, and whether they are kept."""
        self._discarding: dict[str, asyncio.Task[None]] = {}

    def host_network(self, policy: NetworkPolicy) -> bool:
        """Does a box of this policy share the host's network? Only where the user asked for it, or nothing else is."""
        return self.plain or (policy.mode == "public" and self.context.options.get("network") == "host")

    async def open(self) -> Helper:
        """The helper, started on first use."""
        async with self._opening:
            if self._closed:
                raise ConfigurationError("This sandbox provider is closed.")
            if self._helper is None:
                self._helper = await self._open()
            return self._helper

    async def _open(self) -> Helper:
        if self.plain and not _PLAIN_PATH.fullmatch(str(self.state)):  # it is going to stand in scripts, as it is
            raise ConfigurationError(
                f"Where namespaces are forbidden (stage 3), boxes cannot lie at {str(self.state)!r}, which scripts "
                "would have to quote.",
                remedy="Name a folder of plain characters with BENCHFLOW_CACHE.",
            )
        self._make_folders()
        helper = Helper.launch(self.context.work_dir / "sandbox-local.log")
        try:
            if self.plain:
                await asyncio.to_thread(leases.reap_dead, self.state)
                self.facts = {"stage": 3, "single_user": True, "idmap": False}
                self.layout = Layout(self.state, 3, "", {}, frozenset(), {})
            else:
                # The helper finds out what it may do while we look whether the host has changed.
                name, _ = await asyncio.gather(asyncio.to_thread(self._make_base), self._set_up(helper))
                self.layout = self._layout(name)
        except BaseException:
            await helper.close()
            raise
        return helper

    def _make_folders(self) -> None:
        try:
            for name in _FOLDERS:
                (self.state / name).mkdir(parents=True, exist_ok=True)
            for name in ("boxes", "snaps"):
                spread.apart(self.state / name)
            self.state.chmod(0o700)
        except OSError as error:
            raise ConfigurationError(
                f"The embedded sandbox cannot use {self.state}: {error.strerror}.",
                remedy="Name another folder with --sandbox-option dir=FOLDER.",
            ) from error

    def _make_base(self) -> str:
        leases.reap_dead(self.state)
        return base.build_base(self.state, own=os.geteuid() != 0)

    async def _set_up(self, helper: Helper) -> None:
        stage = probe.forced_stage(self.context.options.get("stage"))
        dirs = host.host_dirs() | ({"python": self.python.prefix} if self.python.hidden else {})
        config: dict[str, Any] = {"state": str(self.state), "dirs": list(dirs.items()), "stage": stage}
        config["nesting"] = self.context.options.get("nesting") == "yes"
        try:
            self.facts = await helper.channel.call("setup", **config)
        except OSError as error:
            raise SandboxStartError(f"No box can be made here: {error.strerror}.", retryable=False) from error
        if "unavailable" in self.facts:
            reason = f"Stage {stage} is not possible here: {self.facts['unavailable']}."
            raise CapabilityMissing(reason, remedy="Leave the stage to the sandbox.")

    def _layout(self, name: str) -> Layout:
        dirs = host.host_dirs()
        read_only = frozenset(self.facts["read_only"]) & frozenset(dirs)
        always = dict.fromkeys(self.python.mounts, "low/python")
        return Layout(self.state, self.facts["stage"], name, dirs, read_only, always)

    async def start(
        self,
        recipe: Layering,
        lease: leases.LeaseRequest,
        *,
        workdir: str = "/",
        revert: Sequence[str] = (),
        carry: bool = False,
        building: bool = False,
        writable: Mapping[str, str] | None = None,
        **plan: Any,
    ) -> StartedBox:
        """A new box, of which nothing is left when it fails.

        `carry`: the topmost layer is copied, as the box's own changes. `plan` adds to what the helper is told: network,
        control groups.
        """
        helper = await self.open()
        there = (name for name in recipe.layers if name not in self._discarding)
        missing = set(recipe.layers).difference(name for name in there if os.path.isdir(f"{self.state}/{name}"))
        if missing:
            raise SandboxStartError(f"The image of box {lease.name} is gone: {min(missing)}.", retryable=False)
        name = secrets.token_hex(6)
        path = leases.write(name, self.state / "boxes" / name, lease)
        ours, theirs = socket.socketpair()
        channel = Channel(SocketLine(ours), f"Box {lease.name}")
        first = _ReadyMessage(channel)
        mounts: Mounts = []
        try:
            with theirs:
                settings: dict[str, Any] = {**_USUAL, **plan}
                if self.plain:
                    settings |= plain_plan(
                        self.state, name, recipe.shown, writable or {}, self.python.prefix, layers=recipe.layers,
                        places=recipe.places, workdir=workdir, building=building, landlock=probe.facts(3).landlock,
                    )  # fmt: skip
                else:
                    mounts = await self._layers(name, recipe, revert, carry, writable or {})
                    settings |= {"box": name, "mounts": mounts}
                    settings |= {"workdir": workdir, "repositories": recipe.repositories}
                settings |= {"lease": str(path), "state": str(self.state)}
                await helper.channel.call("start", descriptors=[theirs.detach()], **settings)
            async with asyncio.timeout(_START_SECONDS):
                answer = await asyncio.shield(first.said)
            if answer["event"] != "ready":
                raise SandboxStartError(f"Box {lease.name} did not start: {answer.get('reason', 'it ended')}.")
            users = tuple(answer["users"])
            return StartedBox(name, channel, mounts, path, tuple(answer["notes"]), users, answer.get("workdir"))
        except BaseException as error:
            await asyncio.shield(channel.close())
            await asyncio.shield(self._undo(helper, name, path))
            if isinstance(error, TimeoutError):
                raise SandboxStartError(f"Box {lease.name} did not start within {_START_SECONDS:.0f} s.") from error
            raise

    async def _undo(self, helper: Helper, name: str, lease: Path) -> None:
        with contextlib.suppress(Exception):
            await helper.work("remove", box=name)
            await self.job("discard", paths=[f"boxes/{name}"])
        leases.remove(lease)

    async def _layers(
        self, box: str, recipe: Layering, revert: Sequence[str], carry: bool, writable: Mapping[str, str]
    ) -> Mounts:
        layers = recipe.layers
        if revert:
            own = f"boxes/{box}/s"
            mounts = self.layout.mounts(layers[1:], recipe.shown)
            (self.state / "boxes" / box).mkdir()
            await self.job("revert", source=layers[0], layer=own, mounts=mounts, paths=list(revert))
            layers = (own, *layers[1:])
        if carry:
            mounts = self.layout.mounts(layers[1:], recipe.shown, writable)
            await self.job("carry", box=box, source=layers[0], mounts=mounts)
            return mounts
        mounts = self.layout.mounts(layers, recipe.shown, writable)
        if self.layout.stage == 2:
            await self.job("seed", box=box, mounts=mounts)
        return mounts

    async def job(self, name: str, *, lease: Path | None = None, **arguments: Any) -> dict[str, Any]:
        """Work on files in a fork of the helper. `lease`: what it makes goes with us."""
        helper = await self.open()
        more = {"lease": str(lease)} if lease else {}
        return await helper.work("job", job=name, state=str(self.state), **{"with": arguments}, **more)

    async def remove(self, box: StartedBox) -> None:
        """End a box and delete its files."""
        await box.channel.close()
        try:
            if self._helper is not None:
                await self._helper.work("remove", box=box.id)
        except (SandboxLost, InfrastructureError):  # the helper was killed: the box ends by itself, its files do not
            await asyncio.to_thread(leases.reap_file, box.lease)

    async def end(self, box: StartedBox) -> None:
        """End a box's processes; its files stay."""
        await box.channel.close()
        helper = await self.open()
        await helper.work("end", box=box.id)

    def forget(self, layers: Sequence[str]) -> None:
        """Remove snapshots of ours that were not kept; others are left alone. Nobody waits for it but `close`."""
        dropped = [layer for layer in layers if self.snapshots.pop(layer, True) is False]
        if dropped:
            work = asyncio.create_task(self._discard(dropped))
            self._discarding |= dict.fromkeys(dropped, work)

    async def _discard(self, layers: Sequence[str]) -> None:
        """A snapshot whose removal fails keeps its lease: the next clean-up finds it."""
        with contextlib.suppress(OSError, BenchflowError):
            await self.job("discard", paths=list(layers))
            for layer in layers:
                leases.remove(leases.folder() / f"{layer.rpartition('/')[2]}.json")
        for layer in layers:
            del self._discarding[layer]

    async def close(self) -> None:
        self.forget([layer for layer, keep in self.snapshots.items() if not keep])
        await asyncio.gather(*self._discarding.values())
        async with self._opening:
            self._closed = True
            if self._helper is not None:
                await self._helper.close()
                self._helper = None
