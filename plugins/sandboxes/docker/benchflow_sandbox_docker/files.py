"""What files take beside the kit's way: much at once through the engine, and from one box to another."""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
import tarfile
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from itertools import chain
from pathlib import Path
from typing import IO, Any, Final

from benchflow_boxkit.channel import Channel
from benchflow_boxkit.command import unknown_user
from benchflow_boxkit.files import Transfer, hear, put, put_now
from benchflow_boxkit.inside import wire

from benchflow_core.errors import InfrastructureError, SandboxLost, TransportError
from benchflow_sandbox_docker.engine.http import EngineError

__all__ = ["between", "upload"]

_BATCH: Final = 1 << 19
_MUCH: Final = 1 << 21
Bulk = Callable[[AsyncIterator[bytes]], Awaitable[None]]
"""The engine's own way in for an archive at the root, faster than the box's connection for much data."""


async def upload(
    channel: Channel, source: Path, target: str, *, user: str | None, mode: int | None, bulk: Bulk
) -> None:
    transfer = Transfer.of(source, target, user=user, mode=mode)
    first, rest = await asyncio.to_thread(transfer.first, _MUCH)
    if len(first) < wire.INLINE:
        await put_now(channel, transfer, first)
        return
    records = chain([first], rest)
    if len(first) < _MUCH:
        await put(channel, "put", transfer.arguments, records, transfer.what)
        return
    with tempfile.TemporaryFile() as whole:
        await asyncio.to_thread(whole.writelines, records)
        if not await _put_whole(channel, transfer.arguments, whole, bulk, transfer.what):
            whole.seek(0)
            await put(channel, "put", transfer.arguments, iter(lambda: whole.read(_BATCH), b""), transfer.what)


async def _put_whole(channel: Channel, arguments: dict[str, Any], whole: IO[bytes], bulk: Bulk, what: str) -> bool:
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
        await hear(channel, result, what)
        return True
    except BaseException:
        with contextlib.suppress(SandboxLost, OSError):
            await asyncio.shield(channel.call("remove", paths=[f"/{name}"]))
        raise
    finally:
        result.drop()
        channel.forget(number, number + 1)


async def _one_file(name: str, whole: IO[bytes]) -> AsyncIterator[bytes]:
    """Yield a tar archive that holds one file."""
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = whole.tell(), 0o600
    whole.seek(0)
    yield entry.tobuf()
    while data := await asyncio.to_thread(whole.read, _BATCH):
        yield data
    yield b"\0" * (-entry.size % tarfile.BLOCKSIZE + 2 * tarfile.BLOCKSIZE)


async def between(source: Channel, op: str, arguments: Mapping[str, Any], target: Channel, what: str) -> None:
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
