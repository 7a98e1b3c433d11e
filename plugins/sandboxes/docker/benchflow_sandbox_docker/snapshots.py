"""A box's file system captured as an image: what differs from the one it started from, and undoing parts of that."""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from benchflow_boxkit import leases

from benchflow_core.contracts.sandboxes import Change, ImageRef, Snapshot
from benchflow_core.errors import InfrastructureError, TransferRefused
from benchflow_sandbox_docker import files
from benchflow_sandbox_docker.container import Container
from benchflow_sandbox_docker.engine.api import EngineClient
from benchflow_sandbox_docker.engine.http import EngineError
from benchflow_sandbox_docker.inside.state import ENGINE_FILES
from benchflow_sandbox_docker.interpreter import MOUNT

__all__ = ["ContainerSnapshots"]

_REPOSITORY: Final = "benchflow-snapshot"
_TERM: Final = 6 * 3600.0
_MOST: Final = 32 << 30
"""Bytes: one file that is all hole would fill the disk of the host."""
_MODIFIED, _ADDED, _DELETED = 0, 1, 2
_MARK, _ALL_GONE = ".wh.", ".wh..wh..opq"
_NOT_FILES: Final = ("/dev", "/proc", "/sys", "/.dockerenv", "/run/.containerenv", "/.benchflow-volumes")
_ENGINE_OWN: Final = frozenset({*ENGINE_FILES, "/etc/mtab"})
_ACCOUNTS: Final = ("/etc/passwd", "/etc/group")
_ACCOUNT_BYTES: Final = 64 * 1024
_SHM: Final = "/dev/shm"
Index = Mapping[str, Sequence[Any]]
"""Path to type, mode, uid, gid: what an image has."""
OpenDonor = Callable[[str], Awaitable[Container]]


class ContainerSnapshots:
    def __init__(self, engine: EngineClient, cache_dir: Path, labels: Mapping[str, str], open_donor: OpenDonor) -> None:
        self._engine, self._labels, self._open_donor = engine, labels, open_donor
        self._cache = cache_dir / "docker" / "indexes"
        self._indexes: dict[str, asyncio.Future[Index]] = {}
        self._taken: dict[str, bool] = {}
        """Snapshot image to whether it is kept."""
        self._added: dict[str, frozenset[str]] = {}

    def index(self, image: str) -> asyncio.Future[Index]:
        """What is in an image, found out once, by a box on it that nothing else runs in."""
        found = self._indexes.get(image)
        if found is None or (found.done() and (found.cancelled() or found.exception() is not None)):
            found = self._indexes[image] = asyncio.ensure_future(self._read_index(image))
        return found

    async def _read_index(self, image: str) -> Index:
        path = self._cache / f"{image.rpartition(':')[2]}.json"
        if image in self._taken:  # a snapshot: nobody will ask for it again
            found: Index = await asyncio.to_thread(json.loads, await self._ask_index(image))
            return found
        if not path.is_file():
            await asyncio.to_thread(_write, path, await self._ask_index(image))
        found = await asyncio.to_thread(lambda: json.loads(path.read_bytes()))
        return found

    async def _ask_index(self, image: str) -> bytes:
        donor = await self._open_donor(image)
        try:
            return await _listing(donor, "index")
        finally:
            await asyncio.shield(donor.remove())

    # --- capturing -------------------------------------------------------------------------------------------------

    async def take(self, box: Container, image: ImageRef, name: str, *, keep: bool, carry: bool = False) -> Snapshot:
        """`carry`: where the box itself is on a snapshot, against what that one was taken against."""
        source = str(image.meta["image"])
        carry = carry and "origin" in image.meta
        origin = str(image.meta["origin"]) if carry else source
        index = self.index(origin)
        tmpfs = [*map(str, image.meta.get("tmpfs") or ())]
        volumes = [*map(str, image.meta.get("volumes") or ()), *tmpfs]
        tag = secrets.token_hex(8)
        marks = leases.labels("snapshot", {**self._labels, "name": name}, expires_after=None if keep else _TERM)
        try:
            await box.channel.call("freeze")
            if (size := await self._engine.written(box.id)) > _MOST:
                raise TransferRefused(
                    f"The box's files are too large to be captured: {size >> 30} GiB, of {_MOST >> 30} at most. The "
                    "engine writes the holes of a file, too."
                )
            packed = await box.channel.call("pack", paths=[*volumes, _SHM])
            changed, touched, identity = await asyncio.gather(
                self._changes(box, source),
                _listing(box, "touched"),
                self._commit(box, source, tag, marks),
            )
            found = _together(changed, json.loads(touched), await index)
            found |= _earlier(image.meta["changed"] if carry else (), found, await index)
            rows = await self._rows(box, image, found, await index, volumes, tmpfs)
            rows = sorted([*rows, *await _engine_rows(box, packed["files"])], key=lambda row: row.path)
        except OSError as error:
            raise InfrastructureError(f"The box cannot be captured: {error.strerror}.") from error
        finally:
            with contextlib.suppress(InfrastructureError, OSError):
                await asyncio.shield(_thaw(box))
        captured = replace(
            image,
            ref=f"{_REPOSITORY}:{tag}",
            digest=identity,
            meta={
                **image.meta,
                "image": identity,
                "origin": origin,
                "changed": [[row.path, row.kind == "deleted"] for row in rows],
                "packed": packed["packed"],
                "entrypoint": [],
                "own_accounts": any(map(_holds_up_the_engine, rows)),
            },
        )
        self._taken[identity] = keep
        self._added[identity] = frozenset(row.path for row in rows if row.kind == "added")
        return Snapshot(name, captured, tuple(rows))

    async def _commit(self, box: Container, image: str, tag: str, marks: Mapping[str, str]) -> str:
        """Commit the box. What the engine refuses of it, and not of an untouched one, was left there by the agent."""
        try:
            return await self._engine.commit(box.id, _REPOSITORY, tag, marks)
        except EngineError as error:
            full = "no space left" in error.reason  # the engine has no code for its own full disk
            if error.status < 500 or full or not await self._captures_untouched(image, marks):
                raise
            raise TransferRefused(f"What was left in the box cannot be captured: {error.reason}.") from error

    async def _captures_untouched(self, image: str, marks: Mapping[str, str]) -> bool:
        """Try with a box on the same image in which nothing ran."""
        try:
            donor = await self._open_donor(image)
            try:
                identity = await self._engine.commit(donor.id, _REPOSITORY, secrets.token_hex(8), marks)
            finally:
                await asyncio.shield(donor.remove())
            await self._engine.remove_image(identity)
        except InfrastructureError:
            return False
        return True

    async def _changes(self, box: Container, image: str) -> list[dict[str, Any]]:
        try:
            return await self._engine.changes(box.id)
        except EngineError as error:  # Podman's, where a file became a folder
            if error.status != 500:
                raise
        donor = await self._open_donor(image)
        try:
            lists = await asyncio.gather(*(_listing(one, "index", stamps=True) for one in (donor, box)))
        finally:
            await asyncio.shield(donor.remove())
        return await asyncio.to_thread(_compared, *lists)

    async def _rows(
        self,
        box: Container,
        image: ImageRef,
        changed: Mapping[str, int],
        index: Index,
        volumes: list[str],
        tmpfs: list[str],
    ) -> list[Change]:
        ours = [MOUNT, *(str(target) for _, target in image.meta.get("mounts") or ())]
        kinds = {path: kind for path, kind in changed.items() if not _hidden(path, ours)}
        for folder in volumes:
            listed = (await box.channel.call("below", path=folder))["paths"]
            kinds |= {path: _MODIFIED if path in index else _ADDED for path in listed}
            below = f"{folder}/"
            if folder not in tmpfs:  # which begins empty, whatever the image has there
                kinds |= {p: _DELETED for p in index if p.startswith(below) and p not in kinds}
        looked = dict(zip(kinds, (await box.channel.call("look", paths=list(kinds)))["rows"], strict=True))
        replaced = [path for path, kind in kinds.items() if kind == _DELETED and looked[path] is not None]
        gone = _below(index, replaced)
        extra = [path for path in gone if path not in kinds]
        looked |= dict(zip(extra, (await box.channel.call("look", paths=extra))["rows"], strict=True))
        rows = [row for path in looked if (row := _row(path, looked[path], index.get(path))) is not None]
        return sorted(_without_marks(rows, index), key=lambda row: row.path)

    # --- undoing ---------------------------------------------------------------------------------------------------

    async def revert(self, box: Container, image: ImageRef, paths: Sequence[str]) -> None:
        """Before anything else runs in the box."""
        paths = [path for path in paths if path not in ENGINE_FILES]  # a new box has the engine's own
        known = self._added.get(str(image.meta["image"]), frozenset())
        added = [path for path in paths if path in known]
        back = sorted(path for path in paths if path not in known)
        try:
            if added:
                await box.channel.call("remove", paths=sorted(added, reverse=True))
            if back:
                await self._bring_back(box, str(image.meta["origin"]), back)
        except OSError as error:
            raise InfrastructureError(f"Changes cannot be undone: {error}.") from error

    async def _bring_back(self, box: Container, origin: str, paths: list[str]) -> None:
        rows = (await box.channel.call("look", paths=paths))["rows"]
        wanted = [[path, row is None or row[0] != "dir"] for path, row in zip(paths, rows, strict=True)]
        donor = await self._open_donor(origin)
        try:
            await files.between(donor.channel, "give_back", {"paths": wanted}, box.channel, "undoing changes")
        finally:
            await asyncio.shield(donor.remove())

    # --- forgetting ------------------------------------------------------------------------------------------------

    async def forget(self, identity: str) -> None:
        if self._taken.pop(identity, True) is False:
            self._added.pop(identity, None)
            await self._engine.remove_image(identity)

    async def close(self) -> None:
        for future in self._indexes.values():
            future.cancel()
        await asyncio.gather(*self._indexes.values(), return_exceptions=True)
        for identity in reversed(list(self._taken)):
            await self.forget(identity)


def _holds_up_the_engine(row: Change) -> bool:
    """It waits for a pipe to be written, and fails for a folder, a device or a line without end."""
    if row.path not in _ACCOUNTS or row.kind == "deleted":
        return False
    return row.type != "file" or row.size > _ACCOUNT_BYTES


async def _listing(box: Container, op: str, **arguments: Any) -> bytes:
    channel, number = box.channel, box.channel.number()
    stream = channel.reader(number)
    await channel.call(op, number, **arguments)
    parts = []
    while part := await stream.read(1 << 20):
        parts.append(part)
    data = b"".join(parts)
    if data[:1] + data[-1:] not in (b"{}", b"[]"):
        raise InfrastructureError("The list of what is in a box was cut short.")
    return data


def _together(changed: list[dict[str, Any]], touched: list[str], index: Index) -> dict[str, int]:
    """Path to kind: what the engine says, and the files whose size and time were made to look as before."""
    kinds = {path: _MODIFIED if path in index else _ADDED for path in touched}
    return kinds | {str(row["Path"]): int(row["Kind"]) for row in changed}


def _earlier(carried: Iterable[Sequence[Any]], found: Mapping[str, int], index: Index) -> dict[str, int]:
    """What an earlier snapshot changed, to be looked at again: something may have come back in its place since."""
    kinds = {path: _MODIFIED if path in index else _ADDED for path, _ in carried if path not in found}
    return kinds | {path: _DELETED for path, deleted in carried if deleted}


def _compared(before: bytes, after: bytes) -> list[dict[str, Any]]:
    """What an engine would say."""
    old, new = json.loads(before), json.loads(after)
    kinds = {path: _MODIFIED if path in old else _ADDED for path, row in new.items() if old.get(path) != row}
    kinds |= {path: _DELETED for path in old if path not in new}
    return [{"Path": path, "Kind": kind} for path, kind in kinds.items()]


def _write(path: Path, data: bytes) -> None:
    """Whole or not at all, also where two do it at once."""
    path.parent.mkdir(parents=True, exist_ok=True)
    making = path.with_suffix(f".{secrets.token_hex(4)}")
    making.write_bytes(data)
    making.replace(path)


async def _engine_rows(box: Container, paths: list[str]) -> list[Change]:
    found = (await box.channel.call("look", paths=paths))["rows"]
    pairs = zip(paths, found, strict=True)
    return [Change(path, "modified", *row[:5]) if row else Change(path, "deleted", was="file") for path, row in pairs]


async def _thaw(box: Container) -> None:
    await box.channel.call("drop_pack")
    await box.channel.call("thaw")


def _hidden(path: str, ours: Iterable[str]) -> bool:
    if path in _ENGINE_OWN or any(path == top or path.startswith(f"{top}/") for top in (*_NOT_FILES, *ours)):
        return True
    return any(target.startswith(f"{path}/") for target in ours) and path.startswith("/opt/benchflow")


def _children(index: Index, folders: Iterable[str]) -> list[str]:
    """What the image has directly in these directories."""
    tops = set(folders)
    return [path for path in index if path.rpartition("/")[0] in tops] if tops else []


def _below(index: Index, folders: Iterable[str]) -> list[str]:
    """What the image has in directories that were deleted and made again, however deep."""
    tops = tuple(f"{folder}/" for folder in folders)
    return [path for path in index if path.startswith(tops)] if tops else []


def _without_marks(rows: list[Change], index: Index) -> list[Change]:
    """Files of certain names say in a layer that others are gone; so these are, in the image, whoever made them."""
    marks = [row.path for row in rows if row.kind != "deleted" and row.path.rpartition("/")[2].startswith(_MARK)]
    gone = {path for mark in marks for path in _marked(mark, index)}
    kept = [row for row in rows if row.path not in gone and row.path not in marks]
    return [*kept, *(Change(path, "deleted", index[path][0], was=index[path][0]) for path in gone if path in index)]


def _marked(mark: str, index: Index) -> list[str]:
    folder, _, name = mark.rpartition("/")
    if name == _ALL_GONE:
        return _children(index, [folder])
    return [f"{folder}/{name.removeprefix(_MARK)}"]


def _row(path: str, now: Sequence[Any] | None, before: Sequence[Any] | None) -> Change | None:
    if now is None:
        if before is None:
            return None
        return Change(path, "deleted", before[0], was=before[0])
    kind, mode, uid, size, target, gid = now
    if before is None:
        return Change(path, "added", kind, mode, uid, size, target)
    if kind == before[0] == "dir" and [mode, uid, gid] == list(before[1:4]):
        return None
    was = before[0] if before[0] != kind else None
    return Change(path, "modified", kind, mode, uid, size, target, was)
