"""Agents' installs, made once per base image and mounted read-only in every box that wants them."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import platform
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Final

from benchflow_core.contracts.common import Layer
from benchflow_core.contracts.sandboxes import SandboxContext
from benchflow_core.errors import BuildError, ConfigurationError
from benchflow_sandbox_docker import files
from benchflow_sandbox_docker.container import Container, Mount
from benchflow_sandbox_docker.inside import sending
from benchflow_sandbox_docker.inside.launch import DEFAULT_PATH
from benchflow_sandbox_docker.interpreter import MOUNT, PYTHON
from benchflow_sandbox_docker.programs import Command, Programs
from benchflow_sandbox_docker.volumes import Volumes

__all__ = ["Layers"]

_BIN: Final = str(PurePosixPath(PYTHON).parent)
_CA: Final = "/tmp/benchflow-ca.pem"
_CA_NAMES: Final = (
    "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "PIP_CERT", "GIT_SSL_CAINFO",
)  # fmt: skip
_GLIBC: Final = ("/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1")
_INDEXES: Final = ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "UV_INDEX_URL", "UV_DEFAULT_INDEX", "npm_config_registry")
OpenBox = Callable[[str, Sequence[Mount]], Awaitable[Container]]
"""A box for installing: on this image, with these mounts and the internet."""


class Layers:
    def __init__(self, volumes: Volumes, context: SandboxContext, open_box: OpenBox) -> None:
        self._volumes, self._context, self._open_box = volumes, context, open_box
        self._building = asyncio.Semaphore(max(1, context.build_concurrency))

    async def mounts(self, base: str, layers: Sequence[Layer], env: Mapping[str, str]) -> list[Mount]:
        """In order: a later layer sees the earlier ones while it is installed."""
        found: list[Mount] = []
        for layer in layers:
            prefix, earlier = _prefix(layer), tuple(found)
            key = _key(layer, base, earlier)

            async def fill(volume: str, layer: Layer = layer, earlier: Sequence[Mount] = earlier) -> None:
                async with self._building:
                    await self._fill(layer, base, volume, earlier, env)

            found.append(Mount(await self._volumes.ensure(key, fill), prefix))
        return found

    async def _fill(
        self, layer: Layer, base: str, volume: str, earlier: Sequence[Mount], env: Mapping[str, str]
    ) -> None:
        box = await self._open_box(base, [*earlier, Mount(volume, _prefix(layer), read_only=False)])
        try:
            programs = Programs(box.channel)
            box.channel.on_event = programs.exited
            if layer.files:
                arguments: dict[str, object] = {"target": layer.prefix, "user": "root", "mode": None, "owners": True}
                await files.put(box.channel, "put", arguments, _records(layer), f"files of layer {layer.key}")
            async with asyncio.timeout(layer.timeout):
                await self._install(layer, box, programs, env)
        except TimeoutError as error:
            raise BuildError(f"Layer {layer.key}: its install took longer than {layer.timeout:.0f} s.") from error
        finally:
            await asyncio.shield(box.remove())

    async def _install(self, layer: Layer, box: Container, programs: Programs, env: Mapping[str, str]) -> None:
        own = await self._environment(box) if layer.install else {}
        path = f"{_BIN}:{env.get('PATH', DEFAULT_PATH)}"
        full = {**env, **own, "PATH": path, "HOME": "/root", **layer.env}
        if "PATH" in layer.env:
            full["PATH"] = f"{layer.env['PATH']}:{_BIN}"
        for command in layer.install:
            argv = [part.replace("{prefix}", layer.prefix) for part in command]
            done = await programs.exec(Command(argv, layer.prefix, full, "root"), None, None, 1 << 20)
            if done.exit_code:
                log = (done.stdout + done.stderr).decode(errors="replace")[-8000:]
                raise BuildError(
                    f"Layer {layer.key}: {argv[0]} ended with {done.exit_code}: {log.strip()[-300:]}",
                    details={"log": log, "layer": layer.key},
                )

    async def _environment(self, box: Container) -> dict[str, str]:
        """The host's way to the package indexes: certificates and addresses, never a credential."""
        env = self._context.env
        found = {name: env[name] for name in _INDEXES if env.get(name) and "@" not in env[name]}
        bundle = next((env[name] for name in _CA_NAMES if env.get(name) and Path(env[name]).is_file()), None)
        if bundle:
            await files.upload(box.channel, Path(bundle), _CA, user="root", mode=0o644)
            found |= dict.fromkeys(_CA_NAMES, _CA)
        machine = platform.machine()
        loaders = [f"/lib/ld-musl-{machine}.so.1", *_GLIBC]
        musl, *others = (await box.channel.call("look", paths=loaders))["rows"]
        if musl and not any(others):  # our Python has its own C library: it would fetch programs that cannot run here
            found["PIP_PLATFORM"] = f"musllinux_1_2_{machine} musllinux_1_1_{machine}"
        return found


def _prefix(layer: Layer) -> str:
    prefix = os.path.normpath(layer.prefix)
    taken = prefix == MOUNT or prefix.startswith(f"{MOUNT}/") or MOUNT.startswith(f"{prefix}/")
    if not prefix.startswith("/") or prefix.count("/") < 2 or taken:
        raise ConfigurationError(
            f"Layer {layer.key}: the prefix {layer.prefix!r} is not an absolute path below a folder of its own."
        )
    return prefix


def _key(layer: Layer, base: str, earlier: Sequence[Mount]) -> str:
    mounted = [mount.volume.rpartition("-")[0] for mount in earlier]
    parts = [layer.key, layer.prefix, layer.install, sorted(layer.env.items()), base, mounted]
    found = hashlib.sha256(json.dumps(parts).encode())
    for path, data in sorted(layer.files.items()):
        found.update(path.encode() + b"\0" + hashlib.sha256(data).digest())
    return found.hexdigest()[:24]


def _records(layer: Layer) -> Iterator[bytes]:
    """Its files as a transfer: folders as they come up, executable what starts like a script."""
    yield sending.row("top", "", 0o755)
    open_: list[str] = []
    for name, data in sorted(layer.files.items(), key=lambda item: PurePosixPath(item[0]).parts):
        *folders, last = PurePosixPath(name).parts or ("",)
        if name.startswith("/") or ".." in folders or last in ("", ".."):
            raise ConfigurationError(f"Layer {layer.key}: the file {name!r} lies outside its prefix.")
        same = 0
        while same < min(len(open_), len(folders)) and open_[same] == folders[same]:
            same += 1
        yield from (sending.row("up") for _ in open_[same:])
        yield from (sending.row("dir", folder, 0o755) for folder in folders[same:])
        open_ = folders
        yield sending.row("file", last, 0o755 if data.startswith(b"#!") else 0o644, len(data))
        yield data
    yield sending.row("end")
