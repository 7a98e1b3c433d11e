"""The helper process, seen from the provider."""

from __future__ import annotations

import asyncio
import socket
import subprocess
from pathlib import Path
from typing import Any

from benchflow_core.errors import InfrastructureError
from benchflow_sandbox_local.channel import Channel
from benchflow_sandbox_local.command import ENVIRONMENT, helper_command
from benchflow_sandbox_local.helper import transfer, wire

__all__ = ["Answer", "Helper", "remove_as_mapped"]


class Helper:
    """Starts the helper and speaks with it. When this process ends, in whatever way, so does the helper."""

    def __init__(self, channel: Channel, process: subprocess.Popen[bytes]) -> None:
        self.channel, self._process = channel, process

    @classmethod
    def launch(cls, log: Path) -> Helper:
        ours, theirs = socket.socketpair()
        try:
            with theirs, log.open("ab") as output:
                process = subprocess.Popen(
                    helper_command(str(theirs.fileno())),
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=output,
                    env=ENVIRONMENT,
                    cwd="/",
                    pass_fds=[theirs.fileno()],
                    start_new_session=True,
                )
        except BaseException:
            ours.close()
            raise
        return cls(Channel(ours, "The sandbox helper"), process)

    async def work(self, op: str, **arguments: Any) -> wire.Message:
        """A request that a fork of the helper carries out, and answers on a socket of its own."""
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        answer = Answer(ours)
        try:
            with theirs:
                await self.channel.call(op, [theirs.fileno()], **arguments)
            result = await answer.get()
        finally:
            ours.close()
        if "error" in result:
            raise transfer.revive(result["error"])
        return result

    async def close(self) -> None:
        self.channel.close()
        await asyncio.to_thread(self._process.wait)


class Answer:
    """One message from a non-blocking socket."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock

    async def get(self) -> wire.Message:
        loop = asyncio.get_running_loop()
        data = bytearray()
        while True:
            part = await loop.sock_recv(self._sock, 262144)
            if not part:
                raise InfrastructureError("The sandbox helper ended while it was asked to do something.")
            data += part
            if len(data) >= wire.HEADER.size:
                length, _ = wire.HEADER.unpack_from(data)
                if len(data) >= wire.HEADER.size + length:
                    return wire.decode(data)


def remove_as_mapped(path: str) -> None:
    """Delete a tree with files of ids that only a user namespace with our range maps."""
    argv = helper_command("remove", path)
    subprocess.run(argv, env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/", check=False)
