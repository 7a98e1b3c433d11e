"""The bare engine: its HTTP API over the local socket, with nothing of ours in between."""

from __future__ import annotations

import http.client
import io
import json
import os
import socket
import tarfile
from typing import Any

SOCKET = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock").removeprefix("unix://")


class _Connection(http.client.HTTPConnection):
    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(SOCKET)


class Engine:
    """One connection, kept open."""

    def __init__(self) -> None:
        self._connection = _Connection("localhost", timeout=120)

    def ask(self, method: str, path: str, body: Any = None, content: str = "application/json") -> bytes:
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        self._connection.request(method, path, data, {"Content-Type": content})
        answer = self._connection.getresponse()
        found = answer.read()
        if answer.status >= 400:
            raise RuntimeError(f"{method} {path}: {answer.status} {found.decode(errors='replace')[:300]}")
        if answer.will_close:
            self._connection.close()
        return found

    def json(self, method: str, path: str, body: Any = None) -> Any:
        return json.loads(self.ask(method, path, body) or b"null")

    def create(self, image: str, **host: Any) -> str:
        wanted = {"Image": image, "Cmd": ["sleep", "infinity"], "HostConfig": host}
        return str(self.json("POST", "/containers/create", wanted)["Id"])

    def start(self, box: str) -> None:
        self.ask("POST", f"/containers/{box}/start")

    def run(self, box: str, *argv: str) -> bytes:
        wanted = {"Cmd": argv, "AttachStdout": True, "AttachStderr": True}
        found = self.json("POST", f"/containers/{box}/exec", wanted)["Id"]
        output = self.ask("POST", f"/exec/{found}/start", {"Detach": False, "Tty": False})
        code = self.json("GET", f"/exec/{found}/json")["ExitCode"]
        if code:
            raise RuntimeError(f"{argv} ended with {code}: {output!r}")
        return output

    def put(self, box: str, folder: str, archive: bytes) -> None:
        self.ask("PUT", f"/containers/{box}/archive?path={folder}", archive, "application/x-tar")

    def get(self, box: str, path: str) -> bytes:
        return self.ask("GET", f"/containers/{box}/archive?path={path}")

    def remove(self, box: str) -> None:
        self.ask("DELETE", f"/containers/{box}?force=1&v=1")

    def close(self) -> None:
        self._connection.close()


def answers() -> bool:
    engine = Engine()
    try:
        return engine.ask("GET", "/_ping") == b"OK"
    except (OSError, RuntimeError):
        return False
    finally:
        engine.close()


def archive(files: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), 0o755
            tar.addfile(entry, io.BytesIO(content))
    return out.getvalue()
