"""Snapshots as what differs from the image, held on this host: rows taken from one box and put into another.

The image is the vendor's and never changes; a box on a snapshot is a new box on the image, furnished with the rows. So
whatever a box's root user does to it, what another box gets is the image and a list that was read here.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import secrets
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from benchflow_boxkit import files
from benchflow_boxkit.channel import Channel
from benchflow_boxkit.inside import delta, wire
from benchflow_boxkit.inside.sending import LENGTH
from benchflow_core.contracts.sandboxes import Change, ImageRef, Lease, Snapshot
from benchflow_core.errors import InfrastructureError, SandboxLost, SandboxStartError, TransportError

__all__ = ["Indexes", "Snapshots", "kept_leases", "reap_kept"]

_DELTA: Final = "boxkit-delta"
_ROWS: Final = "rows"
_BASE: Final = "base"
"""Rows of the snapshot that the box itself was started from."""
_CHANGED: Final = "changed"
"""Paths."""


def _kept_folder(vendor: str) -> Path:
    """Of this user, whatever the job's cache directory: leases are listed without a job."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser(), "benchflow")
    try:
        home.mkdir(parents=True, exist_ok=True)
    except OSError:
        home = Path(tempfile.gettempdir(), f"benchflow-{os.geteuid()}")
    return home / f"sandbox-{vendor}" / "kept"


class Indexes:
    """What an image has, and what is known about it; looked at once per image in a box where nothing ran yet."""

    def __init__(self, cache_dir: Path, vendor: str) -> None:
        self._folder = cache_dir / vendor / "indexes"

    def find(self, key: str) -> tuple[Mapping[str, Any], Path] | None:
        path = self._folder / f"{key}.json"
        try:
            return json.loads(path.read_text()), path.with_suffix(".paths")
        except (OSError, ValueError):
            return None

    async def take(self, key: str, channel: Channel, image: Mapping[str, Any]) -> None:
        number = channel.number()
        stream = channel.reader(number)
        parts = []
        try:
            await channel.call("index", number)
            while data := await stream.read(1 << 20):
                parts.append(data)
        finally:
            channel.forget(number)
        paths = b"".join(parts)
        if channel.lost.is_set() or not await asyncio.to_thread(_readable, paths):
            raise SandboxLost("The box was lost while its image was looked at.")
        self._folder.mkdir(parents=True, exist_ok=True)
        _write(self._folder / f"{key}.paths", paths)
        _write(self._folder / f"{key}.json", json.dumps(image).encode())


def _readable(paths: bytes) -> bool:
    with contextlib.suppress(Exception):
        return bool(delta.read_index(paths))
    return False


def _write(path: Path, data: bytes) -> None:
    other = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
    other.write_bytes(data)
    other.replace(path)


class Snapshots:
    def __init__(self, work_dir: Path, vendor: str, labels: Mapping[str, str]) -> None:
        self._folder, self._vendor, self._labels = work_dir / "snapshots", vendor, labels

    # --- taking ----------------------------------------------------------------------------------------------------

    async def take(
        self, channel: Channel, image: ImageRef, index: Path, name: str, *, keep: bool, carry: bool = False
    ) -> Snapshot:
        """`carry`: where the box itself is on a snapshot, against what that one was taken against."""
        parent = _kept_folder(self._vendor) if keep else self._folder
        folder = parent / f"{secrets.token_hex(8)}"
        folder.mkdir(parents=True)
        try:
            rows = await self._rows(channel, index, folder / _ROWS)
            changes = await asyncio.to_thread(self._changes, image, folder, rows, carry)
        except BaseException:
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
            raise
        if keep:
            lease = {"name": name, "labels": {**self._labels, "name": name}, "created": time.time()}
            _write(folder / "lease.json", json.dumps(lease).encode())
        meta = {**image.meta, _DELTA: str(folder)}
        size = (folder / _ROWS).stat().st_size
        return Snapshot(name, replace(image, ref=f"{image.ref}+{folder.name}", meta=meta), tuple(changes), size)

    async def _rows(self, channel: Channel, index: Path, target: Path) -> list[list[Any]]:
        number = channel.number()
        writer, stream = channel.writer(number), channel.reader(number + 1)
        taking: list[list[Any]] = []
        reader = delta.Reader(taking.append, lambda _: None)
        try:
            await channel.call("freeze")
            try:
                await channel.call("rows", number)
                with contextlib.suppress(TransportError):
                    await writer.write(await asyncio.to_thread(index.read_bytes))
                    writer.end()
                with target.open("wb") as file:
                    while not reader.done and (data := await stream.read(1 << 20)):
                        await asyncio.to_thread(_both, file, reader, data)
            finally:
                with contextlib.suppress(SandboxLost):
                    await asyncio.shield(channel.call("thaw"))
        except (OSError, wire.Refused, ValueError) as error:
            raise InfrastructureError(f"The box's files cannot be captured: {error}.") from error
        finally:
            stream.drop()
            channel.forget(number, number + 1)
        if not reader.done:
            raise SandboxLost("The box was lost while its files were captured.")
        return taking

    def _changes(self, image: ImageRef, folder: Path, rows: list[list[Any]], carry: bool) -> list[Change]:
        """Against what the box was started from, which may itself be a snapshot."""
        before: dict[str, list[Any]] = {}
        carried: frozenset[str] = frozenset()
        if image.meta.get(_DELTA):
            on = Path(str(image.meta[_DELTA]))
            earlier = on / (_BASE if carry else _ROWS)
            carried = frozenset(json.loads((on / _CHANGED).read_text())) if carry else carried
            if earlier.is_file():
                os.link(earlier, folder / _BASE)
                before = {row[1]: row for row, _ in _read(earlier)}
        found = {}
        for row in rows:
            kind, path, (known, recent) = row[0], row[1], row[6]
            earlier_row = before.get(path)
            there = earlier_row[0] != "gone" if earlier_row else known
            if kind == "gone":
                if there:
                    found[path] = Change(path, "deleted", was=_was(earlier_row))
            elif recent or path in carried:
                found[path] = _change(row, there, _was(earlier_row))
        now = {row[1] for row in rows}
        for path, row in before.items():
            if path not in now and row[0] != "gone":
                found[path] = Change(path, "deleted", was=_was(row))
        _write(folder / _CHANGED, json.dumps(sorted(found)).encode())
        return [found[path] for path in sorted(found)]

    # --- putting ---------------------------------------------------------------------------------------------------

    async def furnish(self, channel: Channel, image: ImageRef, revert: Sequence[str]) -> None:
        """Put a snapshot's rows into a new box, but for the paths that are to be as the image has them."""
        folder = Path(str(image.meta[_DELTA]))
        if not (folder / _ROWS).is_file():
            raise SandboxStartError(f"The snapshot {image.ref} is not there any more.", retryable=False)
        await files.put(channel, "furnish", {}, _parts(folder, frozenset(revert)), f"snapshot {image.ref}")

    @staticmethod
    def is_snapshot(image: ImageRef) -> bool:
        return bool(image.meta.get(_DELTA))

    async def forget(self, snapshot: Snapshot) -> None:
        folder = Path(str(snapshot.image.meta.get(_DELTA) or self._folder / "none"))
        if folder.parent == self._folder:
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)

    async def close(self) -> None:
        await asyncio.to_thread(shutil.rmtree, self._folder, ignore_errors=True)


def _both(file: Any, reader: delta.Reader, data: bytes) -> None:
    file.write(data)
    reader.feed(data)


def _type(kind: str) -> Any:
    return {"hard": "file", "fifo": "other"}.get(kind, kind)


def _was(row: list[Any] | None) -> Any:
    return _type(row[0]) if row and row[0] != "gone" else None


def _change(row: list[Any], there: bool, was: Any) -> Change:
    kind, path, mode, size, extra, (uid, _), _, _ = row
    return Change(
        path=path,
        kind="modified" if there else "added",
        type=_type(kind),
        mode=mode,
        uid=uid,
        size=size,
        target=extra if kind == "link" else None,
        was=was if was != _type(kind) else None,
    )


def _read(path: Path) -> Iterator[tuple[list[Any], tuple[int, int]]]:
    """Each row, and where it and its bytes are in the file."""
    with path.open("rb") as file:
        at = 0
        while head := file.read(LENGTH.size):
            length = LENGTH.unpack(head)[0]
            row = json.loads(file.read(length))
            if row[0] == "end":
                return
            end = at + LENGTH.size + length + (row[3] if row[0] == "file" else 0)
            yield row, (at, end)
            file.seek(end)
            at = end


def _parts(folder: Path, revert: frozenset[str]) -> Iterator[bytes]:
    """What is gone first, deepest first; then the rest, folders before what is in them."""
    own = [(row, span, folder / _ROWS) for row, span in _read(folder / _ROWS) if not _reverted(row, revert)]
    base = folder / _BASE
    if revert and base.is_file():  # a reverted path is as the box had it when it began
        own += [(row, span, base) for row, span in _read(base) if _below(row[1], revert)]
    gone = sorted((entry for entry in own if entry[0][0] == "gone"), key=lambda entry: entry[0][1], reverse=True)
    there = sorted((entry for entry in own if entry[0][0] != "gone"), key=_order)
    for _, (start, end), path in [*gone, *there]:
        with path.open("rb") as file:
            file.seek(start)
            while start < end and (data := file.read(min(end - start, 1 << 18))):
                start += len(data)
                yield data
    yield delta.encode("end", "")


def _order(entry: tuple[list[Any], tuple[int, int], Path]) -> tuple[bool, list[str]]:
    """Hard links after what they are links to."""
    row = entry[0]
    return row[0] == "hard", row[1].split("/")


def _below(path: str, revert: frozenset[str]) -> bool:
    parts = path.split("/")
    return any("/".join(parts[: n + 1]) in revert for n in range(1, len(parts)))


def _reverted(row: list[Any], revert: frozenset[str]) -> bool:
    """Itself or below one that is; or what stands where a folder must be for one to come back."""
    if _below(row[1], revert):
        return True
    return row[0] not in ("dir", "gone") and any(path.startswith(f"{row[1]}/") for path in revert)


# --- leases of kept ones -----------------------------------------------------------------------------------------


def kept_leases(vendor: str) -> Iterator[Lease]:
    folder = _kept_folder(vendor)
    for path in sorted(folder.glob("*/lease.json")) if folder.is_dir() else ():
        with contextlib.suppress(OSError, ValueError, KeyError):
            data = json.loads(path.read_text())
            yield Lease(f"snapshot:{path.parent.name}", "snapshot", dict(data["labels"]), float(data["created"]))


def reap_kept(vendor: str, lease: Lease) -> bool:
    """Whether it was one of these."""
    kind, _, name = lease.id.partition(":")
    if kind == "snapshot" and name.isalnum():
        shutil.rmtree(_kept_folder(vendor) / name, ignore_errors=True)
        return True
    return False
