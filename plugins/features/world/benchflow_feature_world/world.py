"""A world while it lives: provision, readiness, query, snapshot, restore, reset, teardown."""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from benchflow_wires import forwarded

from benchflow_core.contracts import HostEndpoint, ImageRef, Sandbox, Snapshot
from benchflow_core.errors import BenchflowError, ConfigurationError, InfrastructureError
from benchflow_feature_world import seeding
from benchflow_feature_world.handover import Handover
from benchflow_feature_world.plan import PlannedService, WorldPlan
from benchflow_feature_world.probe import http_probe, wait_for
from benchflow_feature_world.running import RunningService
from benchflow_feature_world.state import StateBusy, in_box

__all__ = ["EnvHandle", "EnvState", "StateSnapshot", "World", "WorldDirs"]

Forget = Callable[[Snapshot], Awaitable[None]]
Show = Callable[[HostEndpoint, int], Awaitable[str]]
"""Show a server of the host at a port of a box."""
_IMAGE: Final = "image"
"""The name under which the image's own process runs."""
_TRIES: Final = 40
_TOKEN: Final = "CLAW_ADMIN_TOKEN"


@dataclass(frozen=True, slots=True)
class EnvHandle:
    """What a provisioned world is called and where its servers are, as the agent sees them."""

    name: str
    endpoints: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class EnvState:
    """What is in the world now."""

    services: Mapping[str, Mapping[str, Any]]
    changed: Mapping[str, Any] = field(default_factory=dict)
    """By service, against the state it was provisioned with."""


@dataclass(frozen=True, slots=True)
class StateSnapshot:
    """A captured state; `restore` takes it as long as the world lives."""

    id: str
    data: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class WorldDirs:
    """Where on the host a world writes."""

    logs: Path


class World:
    """Its services run in a box of their own, or, where the sandbox cannot do that, beside the agent."""

    def __init__(self, plan: WorldPlan, dirs: WorldDirs) -> None:
        self.plan, self.dirs = plan, dirs
        self.token = secrets.token_urlsafe(24)
        """For the services' admin routes; known to their processes alone."""
        self.notices: list[str] = []
        self.failure: InfrastructureError | None = None
        self.services: list[PlannedService] = []
        """Those that are installed, and so were started."""
        self.initial: StateSnapshot | None = None
        self._box: Sandbox | None = None
        self._own = False
        self._forget: Forget | None = None
        self._image: ImageRef | None = None
        self._env: dict[str, str] = {}
        self._running: list[RunningService] = []
        self._limits: set[asyncio.Timeout] = set()
        self._snapshots: list[Snapshot] = []
        self._busy = asyncio.Lock()
        self._ready = False

    @property
    def box(self) -> Sandbox:
        if self._box is None:
            raise ConfigurationError("the world is not provisioned.")
        return self._box

    @property
    def image(self) -> ImageRef:
        assert self._image is not None
        return self._image

    @property
    def endpoints(self) -> dict[str, str]:
        found = {service.name: f"http://localhost:{service.port}" for service in self.services}
        named = {service.port for service in self.services}
        return found | {f"port-{port}": f"http://localhost:{port}" for port in self.plan.ports if port not in named}

    # --- life --------------------------------------------------------------------------------------------

    async def provision(
        self,
        box: Sandbox,
        image: ImageRef,
        forget: Forget,
        *,
        own: bool,
        env: Mapping[str, str] | None = None,
        earlier: Handover | None = None,
    ) -> EnvHandle:
        """Start what is in the box. `own`: the box is the world's, and goes with it. What fails leaves nothing.

        `forget` deletes a snapshot. `earlier`: the state that another world came to, in place of the task's own.
        """
        self._box, self._image, self._forget, self._own = box, image, forget, own
        self._env = dict(env or {})
        try:
            await seeding.make_folders(self.box, self.plan)
            await seeding.lay(self.box, self.plan.seeds if earlier is None else earlier.files)
            if not self.plan.image_starts:
                self.services = await self._installed()
                for service in self.services if earlier is None else ():
                    await seeding.seed(self.box, service, self._wrapped, self._service_env())
            await self._start()
            await self.readiness()
            if self.plan.state_paths or self.plan.backend.kind == "sandbox":
                self.initial = await self.snapshot("initial")
            if earlier is not None and self.initial is not None:
                await self._take_up(earlier, self.initial)
        except BaseException:
            await self.teardown()
            raise
        return EnvHandle(self.plan.name, self.endpoints)

    async def readiness(self) -> list[str]:
        """Wait until every probe holds; what was checked."""
        probes = list(self.plan.probes)
        for service in self.services:
            probes.append(http_probe(f"http://localhost:{service.port}{service.health_path}"))
        limit = self.plan.ready_timeout
        limits = [s.ready_timeout for s in self.services if s.ready_timeout is not None]
        seconds = max([limit, *limits]) if self.plan.manifest is None else limit
        python = None if self._own else self.image.runtimes.get("python", "python3")
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        for probe in probes:
            await wait_for(
                self.box,
                probe,
                seconds=seconds,
                until=until,
                python=python,
                gone=lambda: self.failure,
                excerpt=self._excerpt,
            )
        self._ready = True
        return [probe.what for probe in probes]

    async def query(self) -> EnvState:
        """Which services live, and what changed since the world was provisioned."""
        services = {one.name: {"alive": one.alive, "exit_code": one.exit_code} for one in self._running}
        changed: dict[str, Any] = {}
        if self.initial is not None and "files" in self.initial.data:
            now = await self.snapshot(f"query-{secrets.token_hex(4)}")
            try:
                changed = await self.differences(now)
            finally:
                await self.drop(now)
        return EnvState(services, changed)

    async def teardown(self) -> None:
        """Nothing of it is left. Safe to call again; never raises."""
        running, self._running = self._running, []
        box, self._box = self._box, None
        for service in running:
            await service.stop(None if self._own else box)
        if box is not None and self._own:
            with contextlib.suppress(BenchflowError, OSError):
                await box.stop()
        for snapshot in self._snapshots:
            if self._forget is not None:
                with contextlib.suppress(BenchflowError, OSError):
                    await self._forget(snapshot)
        self._snapshots = []

    # --- state -------------------------------------------------------------------------------------------

    async def snapshot(self, name: str | None = None) -> StateSnapshot:
        """A state of all services at one moment: everything in the world's box stands still meanwhile."""
        identity = name or secrets.token_hex(6)
        backend = self.plan.backend
        if not self.plan.state_paths and backend.kind != "sandbox":
            raise ConfigurationError(
                f"environment '{self.plan.name}' declares no state.",
                remedy="Add [environment.state] with its paths.",
            )
        async with self._busy:
            for attempt in range(_TRIES):
                try:
                    async with self._still():
                        data = await backend.snapshot(self.box, self.plan.state_paths, identity)
                    break
                except StateBusy:
                    if attempt == _TRIES - 1:
                        raise
                    await asyncio.sleep(0.02 * (attempt + 1))
        self._snapshots += [value for value in data.values() if isinstance(value, Snapshot)]
        return StateSnapshot(identity, data)

    async def restore(self, snapshot: StateSnapshot) -> None:
        """Services are ended, the state is put back, services are started and waited for."""
        async with self._busy:
            self._ready = False
            running, self._running = self._running, []
            for service in running:
                await service.stop(self.box)
            if self._own and self.plan.image_starts:
                await self.box.kill_all()
            await self.plan.backend.restore(self.box, self.plan.state_paths, snapshot.data)
            self.failure = None
            await self._start()
            await self.readiness()

    async def reset(self) -> None:
        """Back to the state the world was provisioned with."""
        if self.initial is None:
            raise ConfigurationError(f"environment '{self.plan.name}' declares no state to go back to.")
        await self.restore(self.initial)

    async def _take_up(self, earlier: Handover, initial: StateSnapshot) -> None:
        """What the other world began with is what changes are counted from."""
        for path, name, *_ in initial.data.get("files", ()):
            if path in earlier.seeds:
                target = f"{initial.data['folder']}/{name}"
                await self.box.exec(("rm", "-rf", "--", target), cwd="/", timeout=30)
                await self.box.upload(earlier.seeds[path], target)

    async def drop(self, snapshot: StateSnapshot) -> None:
        """Remove a snapshot's copy from the world's box."""
        folder = snapshot.data.get("folder")
        if isinstance(folder, str):
            await self.box.exec(("rm", "-rf", "--", folder), cwd="/", timeout=60)

    async def differences(self, now: StateSnapshot) -> dict[str, Any]:
        """By service, what changed from the provisioned state to a snapshot of it."""
        assert self.initial is not None
        before = {row[0]: f"{self.initial.data['folder']}/{row[1]}" for row in self.initial.data["files"]}
        after = {row[0]: f"{now.data['folder']}/{row[1]}" for row in now.data["files"]}
        found: dict[str, Any] = {}
        for path in sorted({*before, *after}):
            service = next((s for s in self.services if s.db == path), None)
            name = service.name if service else Path(path).stem
            spec = service.service.spec if service and service.service else None
            if service is not None and spec is not None and spec.diff is not None and {path} <= {*before} & {*after}:
                context = replace(seeding.context_of(service, self.image), db=after[path])
                found[name] = await self._own_diff(service, spec.diff(context, before[path]))
            elif self.plan.backend.kind == "sqlite":
                order = {"before": before.get(path), "after": after.get(path)}
                found[name] = await in_box(self.box, "diff", order)
        return found

    async def _own_diff(self, service: PlannedService, argv: Sequence[str]) -> Any:
        done = await self.box.exec(self._wrapped(argv), cwd="/", env=self._service_env(), timeout=120)
        if done.exit_code:
            said = done.stderr.decode("utf-8", "replace").strip()[-300:]
            raise InfrastructureError(f"service '{service.name}' cannot tell what changed: {said}")
        try:
            return json.loads(done.stdout)
        except ValueError as error:
            raise InfrastructureError(f"service '{service.name}' does not tell what changed as JSON: {error}") from None

    # --- what the agent and the rollout have of it ---------------------------------------------------------

    @contextlib.asynccontextmanager
    async def shown(self, show: Show) -> AsyncIterator[None]:
        """Show the world's ports on the loopback of another box, while this is open."""
        if not self._own or not self.plan.ports:
            yield
            return
        async with forwarded(self.box, self.plan.ports, show) as ports:
            lost = [port for port in self.plan.ports if port not in ports]
            if lost:
                raise InfrastructureError(f"port {lost[0]} of the world cannot be shown in the box: it is taken.")
            yield

    @contextlib.asynccontextmanager
    async def guard(self) -> AsyncIterator[None]:
        """Ends its body when a service dies, with that as the reason."""
        self.check()
        try:
            async with asyncio.timeout(None) as limit:
                self._limits.add(limit)
                try:
                    yield
                finally:
                    self._limits.discard(limit)
        except (TimeoutError, BenchflowError) as error:
            if self.failure is None or (isinstance(error, TimeoutError) and not limit.expired()):
                raise
            raise self.failure from error
        self.check()

    def check(self) -> None:
        if self.failure is not None:
            raise self.failure

    # --- parts -------------------------------------------------------------------------------------------

    async def _installed(self) -> list[PlannedService]:
        programs = [service.program for service in self.plan.services]
        script = 'for p in "$@"; do if command -v "$p" >/dev/null 2>&1; then echo 1; else echo 0; fi; done'
        done = await self.box.exec(self._wrapped(("sh", "-c", script, "sh", *programs)), cwd="/", timeout=60)
        there = [line == b"1" for line in done.stdout.split()]
        found = [service for service, is_there in zip(self.plan.services, there, strict=False) if is_there]
        absent = [service for service in self.plan.services if service not in found]
        why = "is not installed in the image"
        self.notices += [f"service '{s.name}' is not started: {s.program} {why}." for s in absent]
        if not found:
            raise InfrastructureError(
                f"none of the world's services is installed in the image: {', '.join(programs)}.",
                remedy="Install them in the image, or install their plugins here.",
                retryable=False,
            )
        return found

    async def _start(self) -> None:
        if self.plan.image_starts:
            argv = self.image.main
            if not argv:
                raise InfrastructureError(
                    f"the image of environment '{self.plan.name}' starts nothing by itself.",
                    remedy="Give it an ENTRYPOINT or CMD, or list services with owns_lifecycle = false.",
                    retryable=False,
                )
            await self._launch(_IMAGE, argv, None)
            return
        for service in self.services:
            argv = service.argv(seeding.context_of(service, self.image))
            await self._launch(service.name, self._wrapped(argv), seeding.root_of(self.box))

    async def _launch(self, name: str, argv: Sequence[str], user: str | None) -> None:
        log = self.dirs.logs / f"{name}.log"
        env = self._service_env()
        started = RunningService.start(self.box, name, argv, env=env, user=user, log=log, died=self._died)
        self._running.append(await started)

    def _service_env(self) -> dict[str, str]:
        return {**self._env, _TOKEN: self.token}

    def _wrapped(self, argv: Sequence[str]) -> tuple[str, ...]:
        """What plugins bring comes last: a program of the image's own is preferred."""
        bins = ":".join(f"{layer.prefix}/bin" for layer in self.plan.layers())
        if not bins:
            return tuple(argv)
        return ("sh", "-c", 'PATH="$PATH:$0"; export PATH; exec "$@"', bins, *argv)

    def _died(self, service: RunningService) -> None:
        keeps = self.plan.manifest is None or self.plan.manifest.environment.keep_alive
        if service.name == _IMAGE and keeps and (self._ready or service.exit_code == 0):
            return
        self.failure = service.failure("while the agent was at work" if self._ready else "before it was ready")
        now = asyncio.get_running_loop().time()
        for limit in list(self._limits):
            limit.reschedule(now)

    def _excerpt(self) -> str:
        return "\n".join(f"[{one.name}] {one.excerpt()}" for one in self._running)[-8000:]

    @contextlib.asynccontextmanager
    async def _still(self) -> AsyncIterator[None]:
        """Nothing of the world runs: its whole box where it has one, else its services' processes."""
        pids = await self.box.processes() if self._own else [one.pid for one in self._running if one.pid]
        stopped = [str(pid) for pid in pids]
        if stopped:
            await self.box.exec(("kill", "-STOP", *stopped), cwd="/", user=seeding.root_of(self.box), timeout=10)
        try:
            yield
        finally:
            if stopped:
                await self.box.exec(("kill", "-CONT", *stopped), cwd="/", user=seeding.root_of(self.box), timeout=10)
