"""Both of Modal's services on one port, and a place that large files are uploaded to."""

from __future__ import annotations

import asyncio
import hashlib
from typing import Any

from aiohttp import web
from google.protobuf.json_format import MessageToDict
from grpclib.config import Configuration
from grpclib.server import Server
from modal._utils.grpc_utils import custom_detail_codec

from benchflow_testing_clouds.backing import Backing
from benchflow_testing_clouds.ledger import Ledger
from benchflow_testing_clouds.modal.api import TOKEN, ModalApi
from benchflow_testing_clouds.modal.router import Router
from benchflow_testing_clouds.modal.service import Mapping
from benchflow_testing_clouds.modal.state import ModalWorld
from benchflow_testing_clouds.serving import listen

__all__ = ["ModalServer", "make"]

_WINDOW = 16 << 20


class ModalServer:
    def __init__(self, backing: Backing, ledger: Ledger, port: int) -> None:
        self._ledger, self._port = ledger, port
        self.world = ModalWorld(backing)
        self._api, self._router = ModalApi(self.world, ledger), Router(self.world, ledger)
        self._server: Server | None = None
        self._blobs: web.AppRunner | None = None

    async def start(self) -> tuple[str, dict[str, str]]:
        self.world.open()
        app = web.Application(client_max_size=1 << 31)
        app.router.add_put("/{blob}", self._upload)
        self._blobs, port = await listen(app)
        self._api.blobs_url = f"http://127.0.0.1:{port}"
        config = Configuration(http2_connection_window_size=_WINDOW, http2_stream_window_size=_WINDOW)
        self._server = Server([self._api, self._router], config=config, status_details_codec=custom_detail_codec)
        self._server._mapping = Mapping(self._server._mapping, self._ledger)
        await self._server.start("127.0.0.1", self._port)
        assert isinstance(self._server._server, asyncio.Server)
        self._api.url = url = f"http://127.0.0.1:{self._server._server.sockets[0].getsockname()[1]}"
        return url, {"MODAL_SERVER_URL": url, "MODAL_TOKEN_ID": TOKEN[0], "MODAL_TOKEN_SECRET": TOKEN[1]}

    async def _upload(self, request: web.Request) -> web.Response:
        data = await request.read()
        (self.world.folder / request.match_info["blob"]).write_bytes(data)
        return web.Response(headers={"ETag": f'"{hashlib.md5(data, usedforsecurity=False).hexdigest()}"'})

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
        if self._blobs is not None:
            await self._blobs.cleanup()

    def state(self) -> dict[str, Any]:
        running = [known for known in self.world.sandboxes.values() if known.box is not None]
        return {
            "names": dict(self.world.names),
            "sandboxes": {
                known.id: {"tags": known.tags, **MessageToDict(known.definition, preserving_proto_field_name=True)}
                for known in running
            },
        }


def make(backing: Backing, ledger: Ledger, port: int) -> ModalServer:
    return ModalServer(backing, ledger, port)
