"""Files in and out of a box, as records over one stream."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from benchflow_boxkit.channel import Channel
from benchflow_boxkit.command import unknown_user
from benchflow_boxkit.inside import sending, wire
from benchflow_boxkit.inside.receiving import Placement, Receiver
from benchflow_boxkit.streams import Inbound
from benchflow_core.contracts.quick import dataclass
from benchflow_core.contracts.sandboxes import DownloadLimits
from benchflow_core.errors import InfrastructureError, SandboxLost, TransferRefused, TransportError

__all__ = ["Transfer", "batch", "download", "hear", "put", "upload"]

_BATCH: Final = 1 << 19


@dataclass(frozen=True, slots=True)
class Transfer:
    """Into a box: what is sent, and what the worker there is told about it."""

    what: str
    arguments: dict[str, object]
    records: Iterator[bytes]

    @classmethod
    async def of(cls, source: Path, target: str, *, user: str | None, mode: int | None) -> Transfer:
        await asyncio.to_thread(source.lstat)
        records = sending.records(str(source.resolve() if source.is_symlink() else source), links=True)
        return cls(f"upload of {source} to {target}", {"target": target, "user": user, "mode": mode}, records)


async def upload(channel: Channel, source: Path, target: str, *, user: str | None, mode: int | None) -> None:
    found = await Transfer.of(source, target, user=user, mode=mode)
    await put(channel, "put", found.arguments, found.records, found.what)


async def put(channel: Channel, op: str, arguments: dict[str, object], records: Iterator[bytes], what: str) -> None:
    """Send records to a worker in the box, and hear how it went."""
    number = channel.number()
    writer, result = channel.writer(number), channel.reader(number + 1)
    try:
        if "no_user" in await channel.call(op, number, **arguments):
            raise unknown_user(str(arguments.get("user")))
        with contextlib.suppress(TransportError):  # a worker that gave up says why
            while part := await asyncio.to_thread(batch, records, _BATCH):
                await writer.write(part)
            writer.end()
        await hear(channel, result, what)
    finally:
        writer.end() if not channel.lost.is_set() else None
        result.drop()
        channel.forget(number, number + 1)


async def hear(channel: Channel, result: Inbound, what: str) -> None:
    """What the worker says in the end."""
    told = b""
    while part := await result.read():
        told += part
    if not told:
        raise SandboxLost(f"{what}: the box is gone.") if channel.lost.is_set() else TransferRefused(f"{what} failed.")
    answer = json.loads(told)
    if "error" in answer:
        raise _refusal(what, wire.revive(answer["error"]), full_disk_is_ours=True)


def batch(records: Iterator[bytes], wanted: int) -> bytes:
    """The next of them, until there are `wanted` bytes."""
    parts, size = [], 0
    for part in records:
        parts.append(part)
        size += len(part)
        if size >= wanted:
            break
    return b"".join(parts)


async def download(channel: Channel, source: str, target: Path, limits: DownloadLimits) -> None:
    what = f"download of {source}"
    allowed = sending.Limits(limits.max_bytes, limits.max_entries, limits.max_depth)
    receiver = Receiver(str(target), allowed, Placement(least=0o600), links=False)
    number = channel.number()
    stream = channel.reader(number)
    try:
        await channel.call("get", number, source=source, limits=allowed._asdict(), links=False)
        first = await stream.read(1 << 20)
        if first:
            await asyncio.to_thread(_feed, receiver, first, target)
        while not receiver.done and (data := await stream.read(1 << 20)):
            await asyncio.to_thread(receiver.feed, data)
        if not receiver.done:
            raise (
                SandboxLost(f"{what}: the box is gone.") if channel.lost.is_set() else wire.Refused("it was cut short")
            )
    except (wire.Refused, OSError) as error:
        raise _refusal(what, error, full_disk_is_ours=not receiver.sender_failed) from error
    finally:
        stream.drop()
        channel.forget(number)
        receiver.close()


def _feed(receiver: Receiver, data: bytes, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    receiver.feed(data)


def _refusal(what: str, error: Exception, *, full_disk_is_ours: bool) -> Exception:
    """Return what the caller is told: a missing source as itself, a full disk of the host as something to try again.

    A box that sends "no space left" instead of a file has not filled the host's disk: that is no failure of the host.
    """
    if isinstance(error, FileNotFoundError):
        return error
    if full_disk_is_ours and isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EIO):
        return InfrastructureError(f"{what}: {error.strerror}.")
    return TransferRefused(f"{what}: {error.strerror if isinstance(error, OSError) else error}.")
