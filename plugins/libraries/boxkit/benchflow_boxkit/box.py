"""A box whose streams, files and connections all go over one channel."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchflow_boxkit import files
from benchflow_boxkit.channel import Channel
from benchflow_boxkit.command import Command
from benchflow_boxkit.inside import wire
from benchflow_boxkit.inside.launch import DEFAULT_PATH
from benchflow_boxkit.network import Connection, Network
from benchflow_boxkit.onebox import OneBox
from benchflow_boxkit.programs import Programs
from benchflow_core.contracts.sandboxes import AccessView, DownloadLimits, ImageRef, StartRequest
from benchflow_core.errors import TransportError

__all__ = ["Box"]


class Box(OneBox):
    """`upstream`: the host's variables, which say whether the host itself needs a proxy."""

    _channel: Channel | None
    _programs: Programs | None
    _network: Network

    def __init__(
        self, image: ImageRef, request: StartRequest, upstream: Mapping[str, str], forget: Callable[[Any], None]
    ) -> None:
        super().__init__(image, request, forget)
        self._env = {"PATH": DEFAULT_PATH, "LANG": "C.UTF-8", **image.env, **request.env}
        self._network = Network(request.network, upstream)

    def _open(self, channel: Channel) -> None:
        self._channel, self._programs = channel, Programs(channel)
        channel.on_event = self._on_event

    async def _settle(self, identity: str, users: Sequence[str], notices: tuple[str, ...]) -> None:
        """Serve the network of a box that has what it should have, and say what the box is."""
        assert self._channel is not None
        await self._network.attach(self._channel)
        default = (self._image.user or "root").partition(":")[0]
        default = "root" if default == "0" else default
        shown = tuple(users) if default in users else (*users, default)
        self._info = replace(self._info, id=identity, users=shown, default_user=default, notices=notices)

    async def _leave(self) -> None:
        """Close network and programs; call this first in `_end`."""
        self._channel = None
        await self._network.detach()
        if self._programs is not None:
            self._programs.close()

    def _on_event(self, event: wire.Message) -> None:
        if event["event"] == "exit" and self._programs is not None:
            self._programs.exited(event)
        elif event["event"] == "accept":
            self._network.accepted(event)

    def _command(
        self,
        argv: Sequence[str],
        cwd: str | None,
        env: Mapping[str, str] | None,
        user: str | None,
        view: AccessView | None = None,
    ) -> Command:
        full = {**self._network.env, **self._env, **(env or {})}
        return Command(argv, cwd or self._workdir, full, user or self._image.user)

    async def upload(
        self, source: Path, target: str, *, user: str | None = None, mode: int | None = None, service: str = "main"
    ) -> None:
        self._require_main(service)
        channel, _ = await self._live()
        await files.upload(channel, source, target, user=user, mode=mode)

    async def download(
        self, source: str, target: Path, *, limits: DownloadLimits | None = None, service: str = "main"
    ) -> None:
        self._require_main(service)
        channel, _ = await self._live()
        await files.download(channel, source, target, limits or DownloadLimits())

    async def dial(self, port: int, *, service: str = "main") -> Connection:
        self._require_main(service)
        channel, _ = await self._live()
        number = channel.number()
        connection = Connection(channel, number)
        try:
            await channel.call("dial", number, port=port)
        except OSError as error:
            await connection.close()
            raise TransportError(f"Nothing answers on port {port} of the box: {error.strerror}.") from error
        return connection
