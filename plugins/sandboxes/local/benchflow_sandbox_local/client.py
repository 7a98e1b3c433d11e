"""The helper process, seen from the provider."""

from __future__ import annotations

import asyncio
import socket
import subprocess
from pathlib import Path
from typing import Any

from benchflow_boxkit.channel import Channel
from benchflow_boxkit.inside import wire
from benchflow_boxkit.socketline import SocketLine

from benchflow_core.errors import InfrastructureError
from benchflow_sandbox_local.command import ENVIRONMENT, helper_command

__all__ = ["Helper", "remove_as_mapped"]


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
        return cls(Channel(SocketLine(ours), "The sandbox helper"), process)

    async def work(self, op: str, **arguments: Any) -> wire.Message:
        """Ask for work that a fork of the helper may do, and return its result."""
        result = await self.channel.call(op, **arguments)
        if "lost" in result:
            raise InfrastructureError(f"The sandbox helper could not do its work ({op}): {result['lost']}.")
        return result

    async def close(self) -> None:
        await self.channel.close()
        await asyncio.to_thread(self._process.wait)


def remove_as_mapped(path: str) -> None:
    """Delete a tree with files of ids that only a user namespace with our range maps."""
    argv = helper_command("remove", path)
    subprocess.run(argv, env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/", check=False)
