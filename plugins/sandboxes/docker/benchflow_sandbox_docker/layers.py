"""Agents' installs, made once per base image and mounted read-only in every box that wants them."""

from __future__ import annotations

import asyncio
import platform
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Final

from benchflow_boxkit import files, layering
from benchflow_boxkit.command import Command
from benchflow_boxkit.inside import sending
from benchflow_boxkit.inside.launch import DEFAULT_PATH
from benchflow_boxkit.programs import Programs

from benchflow_core.contracts.common import Layer
from benchflow_core.contracts.sandboxes import SandboxContext
from benchflow_core.errors import CapabilityMissing
from benchflow_sandbox_docker.container import Container, Mount
from benchflow_sandbox_docker.interpreter import MOUNT, PYTHON
from benchflow_sandbox_docker.volumes import Volumes

__all__ = ["Layers"]

_BIN: Final = str(PurePosixPath(PYTHON).parent)
_CA: Final = "/tmp/benchflow-ca.pem"
_CA_NAMES: Final = (
    "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "PIP_CERT", "GIT_SSL_CAINFO",
)  # fmt: skip
_MUSL: Final = "/lib/ld-musl-{}.so.1"
_GLIBC: Final = ("/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1")
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
            prefix, earlier = layering.prefix_of(layer, MOUNT), tuple(found)
            mounted = [mount.volume.rpartition("-")[0] for mount in earlier]
            key = layering.digest(layer, base, mounted)[:24]

            async def fill(volume: str, layer: Layer = layer, earlier: Sequence[Mount] = earlier) -> None:
                async with self._building:
                    await self._fill(layer, base, volume, earlier, env)

            found.append(Mount(await self._volumes.ensure(key, fill), prefix))
        return found

    async def _fill(
        self, layer: Layer, base: str, volume: str, earlier: Sequence[Mount], env: Mapping[str, str]
    ) -> None:
        box = await self._open_box(base, [*earlier, Mount(volume, layering.prefix_of(layer, MOUNT), read_only=False)])
        try:
            programs = Programs(box.channel)
            box.channel.on_event = programs.exited
            if layer.files:
                arguments: dict[str, object] = {"target": layer.prefix, "user": "root", "mode": None, "owners": True}
                await files.put(box.channel, "put", arguments, _records(layer), f"files of layer {layer.key}")
            async with asyncio.timeout(layer.timeout):
                await self._install(layer, box, programs, env)
        except TimeoutError as error:
            raise layering.install_timed_out(layer) from error
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
            if done.exit_code < 0:
                await self._refuse_old_musl(layer, argv[0], programs)
            if done.exit_code:
                raise layering.install_failed(layer, argv[0], done.exit_code, done.stdout + done.stderr)

    async def _refuse_old_musl(self, layer: Layer, program: str, programs: Programs) -> None:
        """A program that was built for a newer C library than the image's ends like one with a defect of its own."""
        asked = Command([_MUSL.format(platform.machine())], "/", {}, "root")
        said = (await programs.exec(asked, 10.0, None, 1 << 16)).stderr.decode(errors="replace")
        if "musl" in said and (found := re.search(r"Version (\S+)", said)):
            raise CapabilityMissing(
                f"Layer {layer.key}: {program} crashes on this image, whose C library is musl {found[1]}: it was built "
                "for a newer one.",
                remedy="Use a newer Alpine (3.20 has musl 1.2.5), or an image with glibc such as Debian's.",
            )

    async def _environment(self, box: Container) -> dict[str, str]:
        """The host's way to the package indexes: certificates and addresses, never a credential."""
        env = self._context.env
        found = layering.indexes(env)
        bundle = next((env[name] for name in _CA_NAMES if env.get(name) and Path(env[name]).is_file()), None)
        if bundle:
            await files.upload(box.channel, Path(bundle), _CA, user="root", mode=0o644)
            found |= dict.fromkeys(_CA_NAMES, _CA)
        machine = platform.machine()
        loaders = [_MUSL.format(machine), *_GLIBC]
        musl, *others = (await box.channel.call("look", paths=loaders))["rows"]
        if musl and not any(others):  # our Python has its own C library: it would fetch programs that cannot run here
            found["PIP_PLATFORM"] = f"musllinux_1_2_{machine} musllinux_1_1_{machine}"
        return found


def _records(layer: Layer) -> Iterator[bytes]:
    """Its files as a transfer: folders as they come up, executable what starts like a script."""
    yield sending.row("top", "", 0o755)
    open_: list[str] = []
    for name, data in sorted(layer.files.items(), key=lambda item: PurePosixPath(item[0]).parts):
        *folders, last = PurePosixPath(name).parts
        same = 0
        while same < min(len(open_), len(folders)) and open_[same] == folders[same]:
            same += 1
        yield from (sending.row("up") for _ in open_[same:])
        yield from (sending.row("dir", folder, 0o755) for folder in folders[same:])
        open_ = folders
        yield sending.row("file", last, 0o755 if data.startswith(b"#!") else 0o644, len(data))
        yield data
    yield sending.row("end")
