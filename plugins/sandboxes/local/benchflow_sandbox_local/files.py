"""Files into and out of a box."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchflow_core.contracts.sandboxes import DownloadLimits
from benchflow_core.errors import ConfigurationError, InfrastructureError, TransferRefused
from benchflow_sandbox_local.channel import Channel
from benchflow_sandbox_local.helper import receiving, sending, transfer, wire

__all__ = ["between", "download", "upload"]

_INLINE_BYTES = 4 * 1024 * 1024


async def upload(
    channel: Channel,
    source: Path,
    target: str,
    *,
    user: str | None,
    mode: int | None,
    skip: transfer.Skip | None = None,
) -> None:
    request = {"target": target, "user": user, "mode": mode}
    batch = sending.collect(str(source), _INLINE_BYTES, skip=skip)
    if batch is not None:
        entries, fds = batch
        try:
            _require_user(await channel.call("put_now", fds, entries=entries, **request), user)
        except (transfer.Refused, OSError) as error:
            raise _refusal(f"{source} was not copied into the box", error) from error
        finally:
            wire.close_fds(fds)
        return

    def work(sock: socket.socket) -> None:
        with contextlib.suppress(BrokenPipeError, ConnectionError):  # given up there: the reason waits to be read
            sending.send(sock, str(source), links=True, skip=skip)
        message, received = wire.receive(sock)
        wire.close_fds(received)
        if "error" in message:
            raise transfer.revive(message["error"])

    await _with_worker(channel, "put", request, work, f"{source} was not copied into the box")


async def download(channel: Channel, source: str, target: Path, limits: DownloadLimits) -> None:
    caps = {"max_bytes": limits.max_bytes, "max_entries": limits.max_entries, "max_depth": limits.max_depth}
    target.parent.mkdir(parents=True, exist_ok=True)
    place = receiving.Placement(least=0o600)
    try:
        answer, fds = await channel.call_fds("get_now", source=source, limits=caps, inline=_INLINE_BYTES)
        if "entries" in answer:
            try:
                receiving.write_entries(answer["entries"], fds, str(target), transfer.Limits(**caps), place)
            finally:
                wire.close_fds(fds)
            return
    except (transfer.Refused, OSError) as error:
        raise _refusal(f"{source} was not copied out of the box", error) from error

    def work(sock: socket.socket) -> None:
        receiving.receive(sock, str(target), transfer.Limits(**caps), place)

    await _with_worker(
        channel, "get", {"source": source, "limits": caps}, work, f"{source} was not copied out of the box"
    )


async def between(
    channel: Channel, source: str, other: Channel, target: str, *, user: str | None, mode: int | None
) -> None:
    """From one box into another. The messages pass through a thread here, the files themselves as descriptors."""

    async def receive(incoming: socket.socket) -> None:
        def work(outgoing: socket.socket) -> None:
            while True:
                message, fds = wire.receive(incoming)
                try:
                    wire.send(outgoing, message, fds)
                finally:
                    wire.close_fds(fds)
                if "entries" not in message:
                    break
            answer, fds = wire.receive(outgoing)
            wire.close_fds(fds)
            if "error" in answer:
                raise transfer.revive(answer["error"])

        request = {"target": target, "user": user, "mode": mode, "owners": user is None}
        await _with_worker(other, "put", request, work, f"{source} was not copied")

    caps = {"max_bytes": 1 << 62, "max_entries": 1 << 62, "max_depth": 200}
    ours, theirs = socket.socketpair()
    with ours:
        with theirs:
            await channel.call("get", [theirs.fileno()], source=source, limits=caps, full=True)
        await receive(ours)


async def _with_worker(
    channel: Channel, op: str, request: dict[str, Any], work: Callable[[socket.socket], None], what: str
) -> None:
    """A transfer between a thread here and a process in the box. Cancelling cuts their socket, which ends both."""
    ours, theirs = socket.socketpair()
    with ours:
        with theirs:
            _require_user(await channel.call(op, [theirs.fileno()], **request), request.get("user"))
        thread = asyncio.ensure_future(asyncio.to_thread(work, ours))
        try:
            await asyncio.shield(thread)
        except asyncio.CancelledError:
            with contextlib.suppress(OSError):
                ours.shutdown(socket.SHUT_RDWR)
            await asyncio.gather(thread, return_exceptions=True)
            raise
        except (transfer.Refused, OSError) as error:
            raise _refusal(what, error) from error
        except EOFError as error:
            raise TransferRefused(f"{what}: the process that did it ended.") from error


def _refusal(what: str, error: Exception) -> Exception:
    """What the caller is told: a missing source as itself, a full disk as something to try again."""
    if isinstance(error, FileNotFoundError):
        return error
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EIO):
        return InfrastructureError(f"{what}: {error.strerror}.")
    return TransferRefused(f"{what}: {error.strerror if isinstance(error, OSError) else error}.")


def _require_user(answer: wire.Message, user: str | None) -> None:
    if "no_user" in answer:
        raise ConfigurationError(f"There is no user {user!r} in the box.", remedy="Name one of its users, or a number.")
