"""The state an agent left, kept so that it can be verified again: a snapshot in its sandbox, described in `state.json`.

Kept snapshots outlive the job. One whose rollout was deleted is found by `bench cleanup`: a marker in the cache says
which folder it belongs to.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from benchflow_core.contracts.common import Capability
from benchflow_core.contracts.sandboxes import Change, ImageRef, Lease, Sandbox, SandboxProvider, SandboxSpec, Snapshot
from benchflow_core.errors import BenchflowError, ConfigurationError, ErrorKind
from benchflow_core.quick import dataclass
from benchflow_core.results.files import write_bytes

if TYPE_CHECKING:
    from benchflow_core.rollout.rollout import Rollout

__all__ = ["STATE_FILE", "Captured", "Keeper", "State", "abandoned", "claim", "held", "read_state"]

STATE_FILE: Final = "state.json"
_VERSION: Final = "1.0"
_PREFIX: Final = "state-"


@dataclass(frozen=True)
class Captured:
    """One box at the moment before it was verified."""

    step: str | None
    workdir: str
    image: ImageRef
    """What the agent's box was started from."""
    snapshot: Snapshot
    running: int
    """Processes that ran there; they are not in the snapshot."""


@dataclass(frozen=True)
class State:
    """What `state.json` holds."""

    sandbox: str
    options: Mapping[str, str]
    captured: list[Captured]
    origins: list[str]
    """Names of kept snapshots that the captured ones stand on."""


class Keeper:
    """Keeps the state of one rollout, as `keep_state` says."""

    def __init__(self, rollout: Rollout) -> None:
        self._rollout = rollout
        self._captured: list[Captured] = []
        self._also: list[str] = []

    @property
    def wanted(self) -> bool:
        return self._rollout.config.keep_state != "none"

    async def origin(self) -> Snapshot:
        """A snapshot that the agent's box goes on from: kept as well, for what is kept later stands on it."""
        name = f"{_PREFIX}{secrets.token_hex(6)}" if self.wanted else "setup"
        if self.wanted:
            self._mark(name)
            self._also.append(name)
        return await self._rollout.sandbox.snapshot(name, keep=self.wanted)

    async def capture(self) -> Snapshot | None:
        """Before a verification, or in its place. What cannot be kept is no failure of the rollout, but said."""
        rollout = self._rollout
        if not self.wanted:
            return None
        why_not = self._why_not()
        if why_not:
            rollout.notice(f"the state was not kept: {why_not}")
            return None
        name = f"{_PREFIX}{secrets.token_hex(6)}"
        self._mark(name)
        try:
            running = len(await rollout.sandbox.processes())
            snapshot = await rollout.sandbox.snapshot(name, keep=True)
        except BenchflowError as error:
            rollout.notice(f"the state was not kept: {error.message}")
            return None
        step = rollout.step.name if rollout.step else None
        self._captured.append(Captured(step, rollout.workdir, rollout.image, snapshot, running))
        return snapshot

    async def settle(self) -> None:
        """After the score: write `state.json`, or let go of what is not wanted after all."""
        if not self._captured and not self._also:
            return
        rollout = self._rollout
        cancelled = rollout.error is not None and rollout.error.kind is ErrorKind.CANCELLED
        passed = rollout.config.keep_state == "failed" and rollout.result.outcome == "passed"
        if self._captured and not cancelled and not passed:
            text = rollout.host.redactor.json_text(json.dumps(self._json(), separators=(",", ":")), json.dumps)
            write_bytes(rollout.dir / STATE_FILE, text.encode())
            return
        names = {*self._also, *(one.snapshot.name for one in self._captured)}
        await drop(rollout.plan.sandbox.spec, names)
        for name in names:
            _marker(rollout.host.cache, name).unlink(missing_ok=True)

    def _why_not(self) -> str | None:
        plan = self._rollout.plan
        if Capability.SNAPSHOT not in plan.capabilities:
            return f"sandbox '{plan.sandbox.name}' makes no snapshots."
        if plan.task.environment.compose is not None:
            return "the task has several services, and a snapshot holds only one."
        return None

    def _mark(self, name: str) -> None:
        _mark(self._rollout.host.cache, name, self._rollout.dir)

    def _json(self) -> dict[str, Any]:
        plan = self._rollout.plan
        return {
            "schema_version": _VERSION,
            "sandbox": plan.sandbox.name,
            "options": dict(self._rollout.config.sandbox_options),
            "origins": self._also,
            "captured": [
                {
                    "step": one.step,
                    "workdir": one.workdir,
                    "image": asdict(one.image),
                    "snapshot": _snapshot_json(one.snapshot),
                    "running": one.running,
                }
                for one in self._captured
            ],
        }


def _snapshot_json(snapshot: Snapshot) -> dict[str, Any]:
    changes = None if snapshot.changes is None else [list(asdict(change).values()) for change in snapshot.changes]
    return {
        "name": snapshot.name,
        "image": asdict(snapshot.image),
        "changes": changes,
        "size_bytes": snapshot.size_bytes,
    }


def read_state(folder: Path) -> State | None:
    """What was kept of a rollout; none where nothing was."""
    path = folder / STATE_FILE
    try:
        data = json.loads(path.read_bytes())
        if data["schema_version"] != _VERSION:
            raise ValueError(f"schema version {data['schema_version']}")
        return State(data["sandbox"], data["options"], [_captured(one) for one in data["captured"]], data["origins"])
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigurationError(f"{path} cannot be read: {error}.") from error


def _captured(data: Mapping[str, Any]) -> Captured:
    kept = data["snapshot"]
    changes = None if kept["changes"] is None else tuple(Change(*row) for row in kept["changes"])
    snapshot = Snapshot(kept["name"], _image(kept["image"]), changes, kept["size_bytes"])
    return Captured(data["step"], data["workdir"], _image(data["image"]), snapshot, data["running"])


def _image(data: Mapping[str, Any]) -> ImageRef:
    return ImageRef(**{**data, "notices": tuple(data["notices"]), "main": tuple(data.get("main", ()))})


# --- boxes whose snapshot exists already --------------------------------------------------------------------


@dataclass
class _HeldBox:
    """A box as it is, but for its snapshot: that was taken, and is not taken again."""

    _inner: Sandbox
    _kept: Snapshot

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def snapshot(self, name: str, *, keep: bool = False) -> Snapshot:
        return self._kept


@dataclass
class _HoldingProvider:
    """A provider that does not forget what is kept."""

    _inner: SandboxProvider
    _kept: Snapshot

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def forget(self, snapshot: Snapshot) -> None:
        if snapshot.name != self._kept.name:
            await self._inner.forget(snapshot)


def held(provider: SandboxProvider, sandbox: Sandbox, snapshot: Snapshot) -> tuple[SandboxProvider, Sandbox]:
    """The same, for a verification that is to use this snapshot of the box."""
    return cast(SandboxProvider, _HoldingProvider(provider, snapshot)), cast(Sandbox, _HeldBox(sandbox, snapshot))


# --- what is left of deleted rollouts -----------------------------------------------------------------------


def _marker(cache: Path, name: str) -> Path:
    return cache / "states" / name


def _mark(cache: Path, name: str, folder: Path) -> None:
    write_bytes(_marker(cache, name), str((folder / STATE_FILE).resolve()).encode())


def claim(state: State, folder: Path, cache: Path) -> None:
    """Make sure that this host kept the state, and say where its rollout lies now: it may have been moved.

    A `state.json` from elsewhere names what it likes; only names that were given here are believed.
    """
    names = [*state.origins, *(one.snapshot.name for one in state.captured)]
    for name in names:
        if "/" in name or not name.startswith(_PREFIX) or not _marker(cache, name).is_file():
            raise ConfigurationError("its state was not kept on this machine, or is gone.")
    for name in names:
        _mark(cache, name, folder)


def abandoned(lease: Lease, cache: Path) -> bool:
    """A kept snapshot whose `state.json` is gone, with the folder it was in."""
    name = lease.labels.get("name", "")
    if not name.startswith(_PREFIX):
        return False
    try:
        return not Path(_marker(cache, name).read_text()).exists()
    except OSError:
        return False


async def drop(spec: SandboxSpec, names: set[str]) -> None:
    """Remove kept snapshots, found by the name they were given. A sandbox that does not tell keeps them."""
    if spec.reap is None:
        return
    for lease in [lease async for lease in spec.list_leases() if lease.labels.get("name") in names]:
        with suppress(BenchflowError, OSError):
            await spec.reap(lease)
