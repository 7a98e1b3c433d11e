"""The engine's calls that we use, each once."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import tarfile
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from typing import Any

from benchflow_core.errors import BuildError
from benchflow_sandbox_docker.engine.host import EngineAddress
from benchflow_sandbox_docker.engine.http import EngineError, Http, Streams

__all__ = ["EngineClient"]

_LOG = 64 * 1024
_GONE_SECONDS = 30.0
_TRIES, _PAUSE = 10, 0.1


class EngineClient:
    def __init__(self, address: EngineAddress) -> None:
        self.http = Http(address)
        self.address = address
        self._version: asyncio.Future[dict[str, Any]] | None = None

    async def version(self) -> dict[str, Any]:
        if self._version is None:
            self._version = asyncio.ensure_future(self._json("GET", "/version"))
        return await asyncio.shield(self._version)

    async def is_podman(self) -> bool:
        parts = (await self.version()).get("Components") or ()
        return any("podman" in str(part.get("Name", "")).lower() for part in parts)

    async def _json(self, method: str, path: str, query: Mapping[str, Any] | None = None, body: Any = None) -> Any:
        return (await self.http.call(method, path, query, body)).json()

    # --- containers ------------------------------------------------------------------------------------------------

    async def create(self, name: str, config: Mapping[str, Any], platform: str | None = None) -> str:
        query = {"name": name, "platform": platform}
        return str((await self._json("POST", "/containers/create", query, config))["Id"])

    async def attach(self, container: str) -> Streams:
        query = {"stream": True, "stdin": True, "stdout": True, "stderr": True}
        return await self.http.take_over(f"/containers/{container}/attach", query)

    async def start(self, container: str) -> None:
        await self.http.call("POST", f"/containers/{container}/start")

    async def remove(self, container: str) -> None:
        """Kill and remove, with its anonymous volumes; returns when it is gone."""
        try:
            await self.http.call("DELETE", f"/containers/{container}", {"force": True, "v": True})
            return
        except EngineError as error:
            if error.status == 404:
                return
            if error.status != 409:
                raise
        with contextlib.suppress(EngineError):  # somebody is at it already
            async with asyncio.timeout(_GONE_SECONDS):
                while True:
                    await self.inspect(container)
                    await asyncio.sleep(0.05)

    async def inspect(self, container: str) -> dict[str, Any]:
        found: dict[str, Any] = await self._json("GET", f"/containers/{container}/json")
        return found

    async def containers(self, label: str) -> list[dict[str, Any]]:
        return list(await self._json("GET", "/containers/json", {"all": True, "filters": {"label": [label]}}) or ())

    async def changes(self, container: str) -> list[dict[str, Any]]:
        return list(await self._json("GET", f"/containers/{container}/changes") or ())

    async def written(self, container: str) -> int:
        """Bytes that it has in its files beyond its image, holes included."""
        answer = await self._json("GET", f"/containers/{container}/json", {"size": True})
        return int(answer.get("SizeRw") or 0)

    async def commit(self, container: str, repo: str, tag: str, labels: Mapping[str, str]) -> str:
        query = {"container": container, "repo": repo, "tag": tag, "pause": False}
        answer = await self._json("POST", "/commit", query, {"Labels": dict(labels)})
        return str(answer["Id"])

    async def put_archive(self, container: str, path: str, tar: AsyncIterator[bytes] | bytes) -> None:
        query, headers = {"path": path}, {"Content-Type": "application/x-tar"}
        await self.http.call("PUT", f"/containers/{container}/archive", query, tar, headers)

    # --- images ----------------------------------------------------------------------------------------------------

    async def image(self, name: str) -> dict[str, Any] | None:
        try:
            found: dict[str, Any] = await self._json("GET", f"/images/{name}/json")
        except EngineError as error:
            if error.status in (404, 400):
                return None
            raise
        return found

    async def images(self, label: str) -> list[dict[str, Any]]:
        for left in reversed(range(_TRIES)):
            try:
                return list(await self._json("GET", "/images/json", {"filters": {"label": [label]}}) or ())
            except EngineError as error:  # Podman fails where an image goes while it lists them
                if error.status != 500 or not left:
                    raise
            await asyncio.sleep(_PAUSE)
        return []

    async def pull(self, name: str, platform: str | None) -> None:
        repo, tag = name, None
        if "@" not in name and ":" not in name.rpartition("/")[2]:
            tag = "latest"
        query = {"fromImage": repo, "tag": tag, "platform": platform}
        await self._follow(self.http.stream("POST", "/images/create", query))

    async def record(self, repo: str, tag: str, labels: Mapping[str, str]) -> None:
        """An empty image that carries labels: how we note in the engine itself that something is complete."""
        empty = io.BytesIO()
        with tarfile.open(fileobj=empty, mode="w") as tar:
            tar.addfile(tarfile.TarInfo("complete"))
        words = (f"{name}={_quoted(value)}" for name, value in labels.items())
        query = {"fromSrc": "-", "repo": f"{repo}:{tag}", "changes": f"LABEL {' '.join(words)}"}
        headers = {"Content-Type": "application/x-tar"}
        await self._follow(self.http.stream("POST", "/images/create", query, empty.getvalue(), headers))

    async def remove_image(self, name: str) -> None:
        with contextlib.suppress(EngineError):
            await self.http.call("DELETE", f"/images/{name}", {"force": True})

    async def build(self, query: Mapping[str, Any], context: AsyncIterator[bytes] | bytes) -> str:
        """Build an image; returns the log. Raises `BuildError` with its tail."""
        headers = {"Content-Type": "application/x-tar"}
        return await self._follow(self.http.stream("POST", "/build", query, context, headers))

    async def _follow(self, stream: AsyncGenerator[bytes, None]) -> str:
        """An answer that comes as rows of progress, to its end or to the row that says what went wrong."""
        log, rest = bytearray(), b""
        async with contextlib.aclosing(stream):
            async for part in stream:
                *lines, rest = (rest + part).split(b"\n")
                for line in lines:
                    _progress(line, log)
            _progress(rest, log)
        return log.decode(errors="replace")

    # --- volumes and networks ----------------------------------------------------------------------------------------

    async def create_volume(self, name: str, labels: Mapping[str, str]) -> None:
        await self.http.call("POST", "/volumes/create", None, {"Name": name, "Labels": dict(labels)})

    async def volume(self, name: str) -> dict[str, Any] | None:
        try:
            found: dict[str, Any] = await self._json("GET", f"/volumes/{name}")
        except EngineError as error:
            if error.status == 404:
                return None
            raise
        return found

    async def volumes(self, label: str) -> list[dict[str, Any]]:
        return list((await self._json("GET", "/volumes", {"filters": {"label": [label]}}))["Volumes"] or ())

    async def remove_volume(self, name: str) -> None:
        with contextlib.suppress(EngineError):
            await self.http.call("DELETE", f"/volumes/{name}", {"force": True})

    async def networks(self, label: str) -> list[dict[str, Any]]:
        return list(await self._json("GET", "/networks", {"filters": {"label": [label]}}) or ())

    async def remove_network(self, name: str) -> None:
        with contextlib.suppress(EngineError):
            await self.http.call("DELETE", f"/networks/{name}")

    async def network(self, name: str) -> dict[str, Any] | None:
        try:
            found: dict[str, Any] = await self._json("GET", f"/networks/{name}")
        except EngineError:
            return None
        return found

    async def connect(self, network: str, container: str) -> None:
        await self.http.call("POST", f"/networks/{network}/connect", None, {"Container": container})

    async def disconnect(self, network: str, container: str) -> None:
        await self.http.call("POST", f"/networks/{network}/disconnect", None, {"Container": container, "Force": True})


def _quoted(value: str) -> str:
    text = value.replace("\\", "\\\\").replace('"', '\\"').replace("$", "\\$").replace("\n", " ")
    return f'"{text}"'


def _progress(line: bytes, log: bytearray) -> None:
    try:
        row = json.loads(line)
    except ValueError:
        return
    if "error" in row:
        code = (row.get("errorDetail") or {}).get("code")
        details = {"log": log.decode(errors="replace"), **({"exit_code": code} if code else {})}
        raise BuildError(str(row["error"]).strip(), details=details)
    log += str(row.get("stream") or "").encode()
    del log[:-_LOG]
