"""Files in and out of a box, as records over one stream."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import secrets
import tarfile
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import IO, Final

from benchflow_core.contracts.sandboxes import DownloadLimits
from benchflow_core.errors import InfrastructureError, SandboxLost, TransferRefused, TransportError
from benchflow_sandbox_docker.channel import Channel
from benchflow_sandbox_docker.engine.http import EngineError
from benchflow_sandbox_docker.inside import sending, wire
from benchflow_sandbox_docker.inside.receiving import Placement, Receiver
from benchflow_sandbox_docker.programs import unknown_user
from benchflow_sandbox_docker.streams import Inbound

__all__ = ["between", "download", "upload"]

_BATCH: Final = 1 << 19
_MUCH: Final = 1 << 21
Bulk = Callable[[AsyncIterator[bytes]], Awaitable[None]]


async def upload(
    channel: Channel,
    source: Path,
    target: str,
    *,
    user: str | None,
    mode: int | None,
    owners: bool = False,
    bulk: Bulk | None = None,
) -> None:
    """`bulk`: the engine's own way in for an archive at the root, faster than the box's connection for much data."""
    what = f"upload of {source} to {target}"
    await asyncio.to_thread(source.lstat)
    records = sending.records(str(source.resolve() if source.is_symlink() else source), links=True)
    arguments: dict[str, object] = {"target": target, "user": user, "mode": mode, "owners": owners}
    first = await asyncio.to_thread(_batch, records, _MUCH)
    rest = chain([first], records)
    if bulk is None or len(first) < _MUCH:
        await put(channel, "put", arguments, rest, what)
        return
    with tempfile.TemporaryFile() as whole:
        await asyncio.to_thread(whole.writelines, rest)
        if not await _put_whole(channel, arguments, whole, bulk, what):
            whole.seek(0)
            await put(channel, "put", arguments, iter(lambda: whole.read(_BATCH), b""), what)


async def _put_whole(channel: Channel, arguments: dict[str, object], whole: IO[bytes], bulk: Bulk, what: str) -> bool:
    """The whole transfer as one file, which a worker in the box reads and removes. False: the engine refuses it."""
    name = f".benchflow-incoming-{secrets.token_hex(8)}"
    number = channel.number()
    result = channel.reader(number + 1)
    try:
        # The engine goes on with a request whose client went away: we see it to its end before we clean up.
        sent = asyncio.ensure_future(bulk(_one_file(name, whole)))
        try:
            await asyncio.shield(sent)
        except EngineError:  # a root file system that is mounted read-only, for one
            return False
        finally:
            await asyncio.gather(sent, return_exceptions=True)
        if "no_user" in await channel.call("put_whole", number, whole=f"/{name}", **arguments):
            raise unknown_user(str(arguments.get("user")))
        await _hear(channel, result, what)
        return True
    except BaseException:
        with contextlib.suppress(SandboxLost, OSError):
            await asyncio.shield(channel.call("remove", paths=[f"/{name}"]))
        raise
    finally:
        result.drop()
        channel.forget(number, number + 1)


async def _one_file(name: str, whole: IO[bytes]) -> AsyncIterator[bytes]:
    """As an archive."""
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = whole.tell(), 0o600
    whole.seek(0)
    yield entry.tobuf()
    while data := await asyncio.to_thread(whole.read, _BATCH):
        yield data
    yield b"\0" * (-entry.size % tarfile.BLOCKSIZE + 2 * tarfile.BLOCKSIZE)


async def put(channel: Channel, op: str, arguments: dict[str, object], records: Iterator[bytes], what: str) -> None:
    """Send records to a worker in the box, and hear how it went."""
    number = channel.number()
    writer, result = channel.writer(number), channel.reader(number + 1)
    try:
        if "no_user" in await channel.call(op, number, **arguments):
            raise unknown_user(str(arguments.get("user")))
        with contextlib.suppress(TransportError):  # a worker that gave up says why
            while batch := await asyncio.to_thread(_batch, records, _BATCH):
                await writer.write(batch)
            writer.end()
        await _hear(channel, result, what)
    finally:
        writer.end() if not channel.lost.is_set() else None
        result.drop()
        channel.forget(number, number + 1)


async def _hear(channel: Channel, result: Inbound, what: str) -> None:
    """What the worker says in the end."""
    told = b""
    while part := await result.read():
        told += part
    if not told:
        raise SandboxLost(f"{what}: the box is gone.") if channel.lost.is_set() else TransferRefused(f"{what} failed.")
    answer = json.loads(told)
    if "error" in answer:
        raise _refusal(what, wire.revive(answer["error"]))


def _batch(records: Iterator[bytes], wanted: int) -> bytes:
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
    receiver = Receiver(str(target), allowed, Placement(least=0o600))
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
    except (wire.Refused, OSError, ValueError, TypeError) as error:
        raise _refusal(what, error) from error
    finally:
        stream.drop()
        channel.forget(number)
        receiver.close()


def _feed(receiver: Receiver, data: bytes, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    receiver.feed(data)


async def between(source: Channel, op: str, arguments: Mapping[str, object], target: Channel, what: str) -> None:
    """From a worker in one box to a worker in another."""
    number, there = source.number(), target.number()
    stream, writer, result = source.reader(number), target.writer(there), target.reader(there + 1)
    try:
        await target.call("take_back", there)
        await source.call(op, number, **arguments)
        with contextlib.suppress(TransportError):
            while data := await stream.read(1 << 20):
                await writer.write(data)
            writer.end()
        told = b""
        while part := await result.read():
            told += part
    finally:
        stream.drop()
        source.forget(number)
        target.forget(there, there + 1)
    answer = json.loads(told or b'{"error": {"refused": "the box is gone"}}')
    if "error" in answer:
        raise InfrastructureError(f"{what}: {wire.revive(answer['error'])}.")


def _refusal(what: str, error: Exception) -> Exception:
    """What the caller is told: a missing source as itself, a full disk as something to try again."""
    if isinstance(error, FileNotFoundError):
        return error
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EIO):
        return InfrastructureError(f"{what}: {error.strerror}.")
    return TransferRefused(f"{what}: {error.strerror if isinstance(error, OSError) else error}.")
