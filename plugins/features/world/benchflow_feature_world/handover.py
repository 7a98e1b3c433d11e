"""What a verifier is told of the world: files from us, and the services themselves at their ports.

The files are consistent copies made while everything in the world stood still. A verifier finds each database at its
own path, and in `/logs/world` beside the state at the start and a list of what changed.
"""

from __future__ import annotations

import contextlib
import json
import posixpath
import secrets
import shutil
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from benchflow_core.contracts import Sandbox, private_folder
from benchflow_core.errors import InfrastructureError

if TYPE_CHECKING:
    from benchflow_feature_world.world import Show, StateSnapshot, World

__all__ = ["INSIDE", "VARIABLE", "Handover", "hand_over", "read_handover"]

INSIDE: Final = "/logs/world"
VARIABLE: Final = "BENCHFLOW_WORLD"
_INDEX: Final = "world.json"
_ENV: Final = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C"}
_CLEAR: Final = """
for path do
  parent=${path%/*}
  if [ -h "$parent" ] || { [ -e "$parent" ] && [ ! -d "$parent" ]; }; then rm -f "$parent" || exit 4; fi
  rm -rf "$path" "$path-wal" "$path-shm" "$path-journal" || exit 4
done
exit 0
"""


@dataclass(frozen=True)
class Handover:
    """`folder` holds what goes to `/logs/world`; `files` says where each of its files belongs besides."""

    folder: Path
    files: Mapping[str, Path]
    """Path in the box to the file of `folder`."""
    seeds: Mapping[str, Path] = field(default_factory=dict)
    """The same as it was when the world was provisioned."""
    ports: tuple[int, ...] = ()
    world: World | None = field(default=None, compare=False)
    """Where it still lives."""

    async def lay(self, box: Sandbox) -> None:
        """Into places that were cleared before: an agent's `-wal` beside a database would be read as part of it."""
        await self.clear(box)
        await box.upload(self.folder, INSIDE)
        for path, file in self.files.items():
            await box.upload(file, path, mode=None if file.is_dir() else 0o644)

    async def clear(self, box: Sandbox) -> None:
        done = await box.exec(
            ("/bin/sh", "-c", _CLEAR, "sh", INSIDE, *self.files), env=_ENV, user=_root(box), cwd="/", timeout=60
        )
        if done.exit_code:
            said = done.stderr.decode("utf-8", "replace").strip()[-300:]
            raise InfrastructureError(f"the world's state cannot be laid into the verifier's box: {said}")

    @contextlib.asynccontextmanager
    async def shown(self, show: Show) -> AsyncIterator[None]:
        """Show the services of the living world at their ports in a box."""
        if self.world is None:
            yield
            return
        async with self.world.shown(show):
            yield


async def hand_over(world: World, folder: Path) -> Handover:
    """The state of a living world, into a new folder on the host."""
    world.check()
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    folder.chmod(0o755)
    rows: list[dict[str, str]] = []
    if world.initial is not None and "folder" in world.initial.data:
        now = await world.snapshot(f"handover-{secrets.token_hex(4)}")
        try:
            rows = await _bring(world, now, folder)
            for name, changes in (await world.differences(now)).items():
                _write(folder / f"{name}.diff.json", changes)
        finally:
            await world.drop(now)
    elif world.plan.state_paths:
        rows = await _as_it_is(world, folder)
    held = {row["path"]: row["file"] for row in rows}
    rows += [{"path": p, "file": held[db]} for db, places in world.plan.places.items() if db in held for p in places]
    index: dict[str, Any] = {**world.plan.stamp(), "endpoints": world.endpoints, "files": rows}
    _write(folder / _INDEX, index)
    return replace(_read(folder, rows), ports=world.plan.ports, world=world)


def read_handover(folder: Path) -> Handover | None:
    """One that was written earlier; its world is gone."""
    try:
        return _read(folder, json.loads((folder / _INDEX).read_bytes())["files"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _read(folder: Path, rows: Sequence[Mapping[str, str]]) -> Handover:
    def named(key: str) -> dict[str, Path]:
        files = {row["path"]: folder / posixpath.basename(row[key]) for row in rows if row.get(key)}
        return {path: file for path, file in files.items() if file.exists()}

    return Handover(folder, named("file"), named("seed"))


async def _bring(world: World, now: StateSnapshot, folder: Path) -> list[dict[str, str]]:
    assert world.initial is not None
    rows: list[dict[str, str]] = []
    taken: set[str] = set()
    with private_folder() as staged:
        for part, snapshot in (("now", now), ("seed", world.initial)):
            await world.box.download(snapshot.data["folder"], staged / part)
            for path, name, *_ in snapshot.data["files"]:
                source = staged / part / name
                if not source.exists():
                    continue
                target = _name(path, taken) if part == "now" else _seed_name(path, rows)
                shutil.move(source, folder / target)
                _open(folder / target)
                if part == "now":
                    rows.append({"path": path, "file": target})
                else:
                    rows = [{**row, "seed": target} if row["path"] == path else row for row in rows]
    return rows


def _name(path: str, taken: set[str]) -> str:
    base = posixpath.basename(path)
    while base in taken or base == _INDEX:
        base = f"_{base}"
    taken.add(base)
    return base


def _seed_name(path: str, rows: Sequence[Mapping[str, str]]) -> str:
    file = next((row["file"] for row in rows if row["path"] == path), posixpath.basename(path))
    stem, dot, suffix = file.rpartition(".")
    return f"{stem}.seed.{suffix}" if dot and stem else f"{file}.seed"


async def _as_it_is(world: World, folder: Path) -> list[dict[str, str]]:
    """Of a backend that keeps its copies to itself."""
    rows: list[dict[str, str]] = []
    taken: set[str] = set()
    for path in world.plan.state_paths:
        target = _name(path, taken)
        with contextlib.suppress(FileNotFoundError):
            await world.box.download(path, folder / target)
            _open(folder / target)
            rows.append({"path": path, "file": target})
    return rows


def _open(path: Path) -> None:
    """Readable to whoever the verifier runs as."""
    for one in (path, *path.rglob("*")) if path.is_dir() else (path,):
        one.chmod(0o755 if one.is_dir() else 0o644)


def _root(box: Sandbox) -> str | None:
    return "root" if "root" in box.info.users else None


def _write(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    path.chmod(0o644)
