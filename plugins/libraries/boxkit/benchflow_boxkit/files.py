"""Files in and out of a box, as records over one stream."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import os
import socket
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any, Final, TypeVar

from benchflow_boxkit.channel import Channel
from benchflow_boxkit.command import unknown_user
from benchflow_boxkit.inside import passing, sending, wire
from benchflow_boxkit.inside.receiving import Placement, Receiver
from benchflow_boxkit.streams import Inbound
from benchflow_core.contracts.quick import dataclass
from benchflow_core.contracts.sandboxes import DownloadLimits
from benchflow_core.errors import InfrastructureError, SandboxLost, TransferRefused, TransportError

__all__ = ["Transfer", "between", "download", "hear", "put", "upload"]

_BATCH: Final = 1 << 19
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Transfer:
    """What goes into a box, and what the worker there is told about it."""

    what: str
    source: str
    arguments: dict[str, Any]
    skip: sending.Skip | None = None

    @classmethod
    def of(
        cls, source: Path, target: str, *, user: str | None, mode: int | None, skip: sending.Skip | None = None
    ) -> Transfer:
        real = str(source.resolve() if source.is_symlink() else source)
        return cls(f"upload of {source} to {target}", real, {"target": target, "user": user, "mode": mode}, skip)

    def records(self) -> Iterator[bytes]:
        return sending.records(self.source, links=True, skip=self.skip)

    def first(self, wanted: int) -> tuple[bytes, Iterator[bytes]]:
        """Return the first `wanted` bytes or all there is, and the rest. Raises where there is no such file."""
        os.lstat(self.source)
        records = self.records()
        return sending.batch(records, wanted), records


async def upload(
    channel: Channel,
    source: Path,
    target: str,
    *,
    user: str | None,
    mode: int | None,
    skip: sending.Skip | None = None,
) -> None:
    """Copy a file, or what is in a folder, into the box."""
    transfer = Transfer.of(source, target, user=user, mode=mode, skip=skip)
    first, rest = await _short(channel, transfer.first, wire.INLINE)
    if len(first) < wire.INLINE:
        await put_now(channel, transfer, first)
    elif channel.passes_descriptors:
        await _put_over_socket(channel, transfer)
    else:
        await put(channel, "put", transfer.arguments, chain([first], rest), transfer.what)


async def put_now(channel: Channel, transfer: Transfer, data: bytes) -> None:
    """Send a small transfer along with the call."""
    try:
        answer = await channel.call("put_now", data=data, **transfer.arguments)
    except (wire.Refused, OSError) as error:
        raise _refusal(transfer.what, error, full_disk_is_ours=True) from error
    _require_user(answer, transfer.arguments)


async def put(channel: Channel, op: str, arguments: dict[str, Any], records: Iterator[bytes], what: str) -> None:
    """Send records to a worker in the box, and hear how it went."""
    number = channel.number()
    writer, result = channel.writer(number), channel.reader(number + 1)
    try:
        _require_user(await channel.call(op, number, **arguments), arguments)
        with contextlib.suppress(TransportError):  # a worker that gave up says why
            while part := await asyncio.to_thread(sending.batch, records, _BATCH):
                await writer.write(part)
            writer.end()
        await hear(channel, result, what)
    finally:
        writer.end() if not channel.lost.is_set() else None
        result.drop()
        channel.forget(number, number + 1)


async def _put_over_socket(channel: Channel, transfer: Transfer) -> None:
    """Send it to a worker over a socket of its own, large files as descriptors."""
    number = channel.number()
    result = channel.reader(number + 1)
    ours, theirs = socket.socketpair()

    def send() -> None:
        with contextlib.suppress(ConnectionError):  # a worker that gave up says why
            passing.send(ours, sending.passed_records(transfer.source, links=True, skip=transfer.skip))

    try:
        with ours:
            answer = await channel.call("put", number, descriptors=[theirs.detach()], **transfer.arguments)
            _require_user(answer, transfer.arguments)
            await _in_thread(send, ours)
        await hear(channel, result, transfer.what)
    finally:
        theirs.close()
        result.drop()
        channel.forget(number + 1)


async def _in_thread(work: Callable[[], None], sock: socket.socket) -> None:
    """Work with a blocking socket in a thread. Cancelling cuts the socket, which ends the work."""
    thread = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        await asyncio.shield(thread)
    except asyncio.CancelledError:
        with contextlib.suppress(OSError):
            sock.shutdown(socket.SHUT_RDWR)
        await asyncio.gather(thread, return_exceptions=True)
        raise


async def _short(channel: Channel, work: Callable[..., Result], *arguments: object) -> Result:
    """Read or write no more than fits into a call.

    For a box on this host a thread would be a third of the whole transfer; for others it is nothing.
    """
    return work(*arguments) if channel.passes_descriptors else await asyncio.to_thread(work, *arguments)


def _require_user(answer: wire.Message, arguments: dict[str, Any]) -> None:
    if "no_user" in answer:
        raise unknown_user(str(arguments.get("user")))


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


async def download(channel: Channel, source: str, target: Path, limits: DownloadLimits) -> None:
    """Copy a file, or what is in a folder of the box, to this host."""
    what = f"download of {source}"
    allowed = sending.Limits(limits.max_bytes, limits.max_entries, limits.max_depth)
    receiver = Receiver(str(target), allowed, Placement(least=0o600), links=False)
    arguments: dict[str, Any] = {"source": source, "limits": allowed._asdict(), "links": False}
    try:
        answer = await channel.call("get_now", **arguments)
        if not answer.get("large"):
            await _short(channel, _feed, receiver, answer["data"], target)
        elif channel.passes_descriptors:
            await _get_over_socket(channel, arguments, receiver, target)
        else:
            await _get(channel, arguments, receiver, target)
        if not receiver.done:
            raise (
                SandboxLost(f"{what}: the box is gone.") if channel.lost.is_set() else wire.Refused("it was cut short")
            )
    except (wire.Refused, OSError) as error:
        raise _refusal(what, error, full_disk_is_ours=not receiver.sender_failed) from error
    finally:
        receiver.close()


async def _get(channel: Channel, arguments: dict[str, Any], receiver: Receiver, target: Path) -> None:
    number = channel.number()
    stream = channel.reader(number)
    try:
        await channel.call("get", number, **arguments)
        while not receiver.done and (data := await stream.read(1 << 20)):
            await asyncio.to_thread(_feed, receiver, data, target)
    finally:
        stream.drop()
        channel.forget(number)


async def _get_over_socket(channel: Channel, arguments: dict[str, Any], receiver: Receiver, target: Path) -> None:
    ours, theirs = socket.socketpair()

    def receive() -> None:
        target.parent.mkdir(parents=True, exist_ok=True)
        while not receiver.done:
            data, descriptors = passing.receive(ours)
            if not data:
                return
            receiver.feed(data, descriptors)

    with ours:
        await channel.call("get", descriptors=[theirs.detach()], **arguments)
        await _in_thread(receive, ours)


async def between(
    source: Channel, path: str, target: Channel, to: str, *, user: str | None, mode: int | None, what: str
) -> None:
    """Copy from one box on this host into another, links included; where no user is named, owners are kept."""
    number = target.number()
    result = target.reader(number + 1)
    here, there = socket.socketpair()
    limits = sending.Limits()._asdict()
    arguments: dict[str, Any] = {"target": to, "user": user, "mode": mode, "owners": user is None}
    try:
        with here, there:
            _require_user(
                await target.call("put", number, descriptors=[os.dup(there.fileno())], **arguments), arguments
            )
            await source.call("get", descriptors=[os.dup(here.fileno())], source=path, limits=limits, links=True)
        await hear(target, result, what)
    finally:
        result.drop()
        target.forget(number + 1)


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
