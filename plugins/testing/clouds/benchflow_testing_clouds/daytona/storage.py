"""The object storage that build contexts are pushed to: as much of S3 as the SDK's client uses."""

from __future__ import annotations

import secrets
from pathlib import Path
from xml.sax.saxutils import escape

from aiohttp import web

from benchflow_testing_clouds.ledger import Ledger

__all__ = ["Storage"]


class Storage:
    def __init__(self, folder: Path, ledger: Ledger) -> None:
        self._folder, self._ledger = folder, ledger
        self._uploads: dict[str, dict[int, bytes]] = {}

    def app(self) -> web.Application:
        app = web.Application(client_max_size=1 << 31)
        app.router.add_route("*", "/{bucket}/{key:.+}", self._handle)
        return app

    def path(self, key: str) -> Path:
        return self._folder / key.replace("/", "_")

    def context(self, organization: str, digest: str) -> Path:
        return self.path(f"{organization}/{digest}/context.tar")

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        self._ledger.count(f"{request.method} object-storage")
        if "AWS4-HMAC-SHA256" not in request.headers.get("Authorization", ""):
            return web.Response(status=403)
        key, query = request.match_info["key"], request.query
        path = self.path(key)
        if request.method == "HEAD":
            if not path.exists():
                return web.Response(status=404)
            size = str(path.stat().st_size)
            headers = {"ETag": '"x"', "Last-Modified": "Tue, 17 Nov 2026 00:00:00 GMT", "Content-Length": size}
            return web.Response(headers=headers)
        if request.method == "POST" and "uploads" in query:
            identity = secrets.token_hex(8)
            self._uploads[identity] = {}
            name = escape(request.match_info["bucket"])
            parts = f"<Bucket>{name}</Bucket><Key>{escape(key)}</Key><UploadId>{identity}</UploadId>"
            return _xml(f"<InitiateMultipartUploadResult>{parts}</InitiateMultipartUploadResult>")
        if request.method == "PUT" and "uploadId" in query:
            self._uploads[query["uploadId"]][int(query["partNumber"])] = await request.read()
            return web.Response(headers={"ETag": f'"{query["partNumber"]}"'})
        if request.method == "POST" and "uploadId" in query:
            done = self._uploads.pop(query["uploadId"])
            path.write_bytes(b"".join(done[number] for number in sorted(done)))
            return _xml('<CompleteMultipartUploadResult><ETag>"x"</ETag></CompleteMultipartUploadResult>')
        if request.method == "PUT":
            path.write_bytes(await request.read())
            return web.Response(headers={"ETag": '"x"'})
        self._ledger.violation(f"{request.method} {request.path_qs}: not a way to store an object")
        return web.Response(status=400)


def _xml(body: str) -> web.Response:
    return web.Response(text=f'<?xml version="1.0" encoding="UTF-8"?>{body}', content_type="application/xml")
