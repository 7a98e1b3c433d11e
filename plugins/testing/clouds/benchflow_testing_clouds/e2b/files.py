"""envd's files: uploads and downloads over HTTP, and the filesystem's remote procedures."""

from __future__ import annotations

import re
import shlex
import tempfile
from pathlib import Path, PurePosixPath
from typing import Any

from aiohttp import web
from e2b.envd.filesystem import filesystem_pb as pb

from benchflow_core.errors import BenchflowError
from benchflow_testing_clouds.backing import BackedBox
from benchflow_testing_clouds.e2b.schema import E2bRefusal, message
from benchflow_testing_clouds.ledger import Fault, Ledger

__all__ = ["EnvdFiles"]

_STAT = r"stat --printf '%F|%s|%a|%A|%U|%G|%n\0' -- "
_FILENAME = re.compile(r'filename="([^"]*)"')


class EnvdFiles:
    """The file calls of one box."""

    def __init__(self, box: BackedBox, user: str, ledger: Ledger) -> None:
        self._box, self._user, self._ledger = box, user, ledger

    # --- over HTTP -------------------------------------------------------------------------------------------------

    async def http(self, request: web.Request, fault: Fault | None) -> web.StreamResponse:
        user = request.query.get("username") or self._user
        path = self._path(request.query.get("path", ""), user)
        return await (self._download(request, path, fault) if request.method == "GET" else self._post(request, user))

    @staticmethod
    def _path(path: str, user: str) -> str:
        home = "/root" if user == "root" else f"/home/{user}"
        return str(PurePosixPath(home, path))

    async def _post(self, request: web.Request, user: str) -> web.Response:
        given = request.query.get("path")
        written = []
        if request.content_type == "application/octet-stream":
            if given is None:
                raise E2bRefusal(400, "path is required")
            written.append(await self._put(self._path(given, user), user, request.content.iter_chunked(1 << 18)))
        else:
            reader = await request.multipart()
            while (part := await reader.next()) is not None:
                assert not isinstance(part, type(reader))
                target = self._path(given or _named(part), user)

                async def chunks(part: Any = part) -> Any:
                    while data := await part.read_chunk(1 << 18):
                        yield data

                written.append(await self._put(target, user, chunks()))
        return web.json_response([{"name": Path(path).name, "type": "file", "path": path} for path in written])

    async def _put(self, target: str, user: str, content: Any) -> str:
        with tempfile.NamedTemporaryFile() as file:
            async for data in content:
                file.write(data)
            file.flush()
            await self._box.sandbox.upload(Path(file.name), target, mode=0o644, user=user)
        return target

    async def _download(self, request: web.Request, path: str, fault: Fault | None) -> web.StreamResponse:
        with tempfile.TemporaryDirectory() as folder:
            target = Path(folder, "file")
            try:
                await self._box.sandbox.download(path, target)
            except (FileNotFoundError, BenchflowError) as error:
                raise E2bRefusal(404, f"path '{path}' does not exist") from error
            if target.is_dir():
                raise E2bRefusal(400, f"path '{path}' is a directory")
            data = target.read_bytes()
        headers = {"Content-Type": "application/octet-stream", "Content-Length": str(len(data))}
        response = web.StreamResponse(headers=headers)
        await response.prepare(request)
        if fault is not None and fault.after_bytes is not None and fault.after_bytes < len(data):
            await response.write(data[: fault.after_bytes])
            assert request.transport is not None
            request.transport.abort()
            return response
        await response.write(data)
        await response.write_eof()
        return response

    # --- remote procedures -----------------------------------------------------------------------------------------

    async def handle(self, name: str, body: bytes, user: str) -> web.Response:
        return web.Response(body=(await self._call(name, body, user)).to_json(), content_type="application/json")

    async def _call(self, name: str, body: bytes, user: str) -> Any:
        user = user or self._user
        if name == "Stat":
            asked = message(pb.StatRequest, body, self._ledger, name)
            return pb.StatResponse(entry=await self._entry(self._path(asked.path, user)))
        if name == "MakeDir":
            path = self._path(message(pb.MakeDirRequest, body, self._ledger, name).path, user)
            if (await self._box.shell(f"test -e {shlex.quote(path)}")).exit_code == 0:
                raise E2bRefusal(409, f"path already exists: {path}")
            await self._shell(f"mkdir -p -- {shlex.quote(path)}", user)
            return pb.MakeDirResponse(entry=await self._entry(path))
        if name == "Remove":
            path = self._path(message(pb.RemoveRequest, body, self._ledger, name).path, user)
            await self._shell(f"rm -rf -- {shlex.quote(path)}", user)
            return pb.RemoveResponse()
        if name == "Move":
            move = message(pb.MoveRequest, body, self._ledger, name)
            source, target = self._path(move.source, user), self._path(move.destination, user)
            await self._shell(f"mv -- {shlex.quote(source)} {shlex.quote(target)}", user)
            return pb.MoveResponse(entry=await self._entry(target))
        if name == "ListDir":
            listing = message(pb.ListDirRequest, body, self._ledger, name)
            path, depth = self._path(listing.path, user), listing.depth or 1
            done = await self._shell(
                f"find {shlex.quote(path)} -mindepth 1 -maxdepth {depth} -exec {_STAT} {{}} +", user
            )
            return pb.ListDirResponse(entries=[_entry(row) for row in sorted(done.split("\0")) if row])
        raise NotImplementedError

    async def _shell(self, command: str, user: str) -> str:
        done = await self._box.shell(command, user=user)
        if done.exit_code:
            text = done.stderr.decode(errors="replace").strip()
            raise E2bRefusal(404 if "No such file" in text else 403 if "denied" in text else 500, text)
        return done.stdout.decode(errors="replace")

    async def _entry(self, path: str) -> Any:
        return _entry((await self._shell(_STAT + shlex.quote(path), "root")).rstrip("\0"))


def _named(part: Any) -> str:
    """The whole path: what aiohttp tells has lost its first slash."""
    found = _FILENAME.search(part.headers.get("Content-Disposition", ""))
    return found[1].replace("%22", '"') if found else ""


def _entry(row: str) -> Any:
    kind, size, mode, permissions, owner, group, path = row.split("|", 6)
    found = {"directory": pb.FileType.DIRECTORY, "symbolic link": pb.FileType.SYMLINK}.get(kind, pb.FileType.FILE)
    return pb.EntryInfo(
        name=PurePosixPath(path).name, type=found, path=path, size=int(size), mode=int(mode, 8),
        permissions=permissions, owner=owner, group=group, is_symlink=kind == "symbolic link",
    )  # fmt: skip
