"""What a Modal account has: apps, uploaded files, images, sandboxes and the commands in them."""

from __future__ import annotations

import asyncio
import hashlib
import os
import secrets
import shutil
import string
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from grpclib import GRPCError, Status
from modal_proto import api_pb2

from benchflow_core.contracts import ImageRef, Process, Resources
from benchflow_core.errors import BenchflowError
from benchflow_testing_clouds.backing import BackedBox, Backing, BuildFailed

__all__ = ["BuiltImage", "KnownModalSandbox", "ModalWorld", "identity", "refuse"]

_ALPHABET = string.ascii_letters + string.digits
_RESULT = api_pb2.GenericResult


def identity(prefix: str) -> str:
    return f"{prefix}-" + "".join(secrets.choice(_ALPHABET) for _ in range(22))


def refuse(status: Status, message: str) -> GRPCError:
    return GRPCError(status, message)


@dataclass
class BuiltImage:
    """An image. `text` and `files` are whole: what it was built upon is in them."""

    id: str
    text: str
    files: dict[str, tuple[str, int]]
    task: asyncio.Task[None] | None = None
    log: str = ""
    reference: ImageRef | None = None
    failure: str = ""
    builder: str = field(default_factory=lambda: identity("ta"))
    began: float = field(default_factory=time.time)
    ended: float = 0.0

    @property
    def result(self) -> api_pb2.GenericResult:
        if self.reference is not None:
            return _RESULT(status=_RESULT.GENERIC_STATUS_SUCCESS)
        if self.failure:
            return _RESULT(status=_RESULT.GENERIC_STATUS_FAILURE, exception=self.failure)
        return _RESULT()


@dataclass
class KnownModalSandbox:
    """A sandbox, running or not."""

    id: str
    task_id: str
    app_id: str
    definition: api_pb2.Sandbox
    tags: dict[str, str]
    jwt: str
    v2: bool
    box: BackedBox | None = None
    main: Any = None
    """The command that it lives as long as."""
    index: int = 0
    created: float = field(default_factory=time.time)
    result: api_pb2.GenericResult = field(default_factory=_RESULT)
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    execs: dict[str, Any] = field(default_factory=dict)
    tasks: list[asyncio.Task[None]] = field(default_factory=list)

    @property
    def metadata(self) -> api_pb2.SandboxHandleMetadata:
        return api_pb2.SandboxHandleMetadata(app_id=self.app_id)


class ModalWorld:
    def __init__(self, backing: Backing) -> None:
        self.backing = backing
        self.folder = Path()
        self.apps: dict[str, str] = {}
        self.mounts: dict[str, dict[str, tuple[str, int]]] = {}
        self.images: dict[str, BuiltImage] = {}
        self.names: dict[str, str] = {}
        self.sandboxes: dict[str, KnownModalSandbox] = {}

    def open(self) -> None:
        self.folder = self.backing.folder("modal")

    # --- files and images -----------------------------------------------------------------------------------------

    def stored(self, digest: str) -> Path:
        return self.folder / digest

    def put(self, digest: str, data: bytes) -> None:
        if hashlib.sha256(data).hexdigest() != digest:
            raise refuse(Status.INVALID_ARGUMENT, "the content is not what its digest says")
        self.stored(digest).write_bytes(data)

    def image(self, name: str) -> BuiltImage:
        found = self.images.get(name)
        if found is None:
            raise refuse(Status.NOT_FOUND, f"Image {name} not found")
        return found

    def make_image(self, asked: api_pb2.Image, again: bool) -> BuiltImage:
        """The one with this definition; built now if there is none."""
        key = hashlib.sha256(asked.SerializeToString(deterministic=True)).hexdigest()
        name = "im-" + key[:22]
        found = self.images.get(name)
        if found is not None and not again and not found.failure:
            return found
        text, files = self._flat(asked)
        if asked.context_mount_id:
            files.update(self.mounts[asked.context_mount_id])
        self.images[name] = found = BuiltImage(name, text, files)
        found.task = asyncio.ensure_future(self._build(found, {f.filename: f.data for f in asked.context_files}))
        return found

    def _flat(self, asked: api_pb2.Image) -> tuple[str, dict[str, tuple[str, int]]]:
        """`FROM base` of another image, written out."""
        bases = {base.docker_tag: self.image(base.image_id) for base in asked.base_images}
        files: dict[str, tuple[str, int]] = {}
        lines: list[str] = []
        for line in asked.dockerfile_commands:
            words = line.split()
            if len(words) == 2 and words[0].upper() == "FROM" and words[1] in bases:
                lines.append(bases[words[1]].text)
                files.update(bases[words[1]].files)
            else:
                lines.append(line)
        arguments = [f"ARG {name}={value}" for name, value in sorted(asked.build_args.items())]
        return "\n".join(arguments + lines) + "\n", files

    async def _build(self, image: BuiltImage, more: Mapping[str, bytes]) -> None:
        folder = self.backing.folder("build")
        try:
            await asyncio.to_thread(self._lay_out, folder / "context", image, more)
            (folder / "Dockerfile").write_text(image.text)
            image.reference = await self.backing.build(folder / "Dockerfile", folder / "context")
            image.log = "Built image\n"
        except BuildFailed as error:
            image.log, image.failure = error.log, "a build command failed"
        except Exception as error:
            image.failure = f"{type(error).__name__}: {error}"
        finally:
            image.ended = time.time()
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)

    def _lay_out(self, folder: Path, image: BuiltImage, more: Mapping[str, bytes]) -> None:
        folder.mkdir()
        for name, (digest, mode) in image.files.items():
            path = folder / name.lstrip("/")
            path.parent.mkdir(parents=True, exist_ok=True)
            mode = mode & 0o7777 or 0o644
            kept = self.folder / f"{digest}.{mode:o}"
            if not kept.exists():
                shutil.copyfile(self.stored(digest), kept)
                kept.chmod(mode)
            os.link(kept, path)
        for name, data in more.items():
            path = folder / name.lstrip("/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)

    # --- sandboxes ------------------------------------------------------------------------------------------------

    def sandbox(self, name: str) -> KnownModalSandbox:
        found = self.sandboxes.get(name)
        if found is None:
            raise refuse(Status.NOT_FOUND, f"Sandbox {name} not found")
        return found

    def of_task(self, task_id: str) -> KnownModalSandbox:
        for found in self.sandboxes.values():
            if found.task_id == task_id:
                if found.box is None:
                    raise refuse(Status.NOT_FOUND, f"Task {task_id} is not running")
                return found
        raise refuse(Status.NOT_FOUND, f"Task {task_id} not found")

    async def create(
        self,
        app_id: str,
        definition: api_pb2.Sandbox,
        tags: Mapping[str, str],
        jwt: str,
        v2: bool,
        command: Callable[[Process, bool, bool], Any],
    ) -> KnownModalSandbox:
        image = self.image(definition.image_id)
        if image.reference is None:
            raise refuse(Status.FAILED_PRECONDITION, f"Image {image.id} is not built")
        name = identity("sb") + ("V" if v2 else "")
        task = identity("ta") + ("V" if v2 else "")
        known = KnownModalSandbox(name, task, app_id, definition, dict(tags), jwt, v2)
        try:
            known.box = await self.backing.start(
                name, image.reference, public=_public(definition.network_access), resources=_resources(definition)
            )
        except BenchflowError as error:
            raise refuse(Status.INTERNAL, error.message) from error
        self.sandboxes[name] = known
        if definition.entrypoint_args:
            known.main = command(await known.box.spawn(list(definition.entrypoint_args), user="root"), True, True)
            known.tasks.append(asyncio.ensure_future(self._entrypoint(known)))
        known.tasks.append(asyncio.ensure_future(self._term(known)))
        return known

    async def _entrypoint(self, known: KnownModalSandbox) -> None:
        await known.main.exited.wait()
        if (code := known.main.code) is not None:
            status = _RESULT.GENERIC_STATUS_SUCCESS if code == 0 else _RESULT.GENERIC_STATUS_FAILURE
            await self.end(known, _RESULT(status=status, exitcode=code))

    async def _term(self, known: KnownModalSandbox) -> None:
        await asyncio.sleep(known.definition.timeout_secs or 300)
        await self.end(known, _RESULT(status=_RESULT.GENERIC_STATUS_TIMEOUT))

    async def end(self, known: KnownModalSandbox, result: api_pb2.GenericResult) -> None:
        if known.box is None:
            return
        known.box, known.result = None, result
        known.ended.set()
        for task in known.tasks:
            if task is not asyncio.current_task():
                task.cancel()
        for command in (*known.execs.values(), *([known.main] if known.main else [])):
            command.lost()
        await self.backing.stop(known.id)

    async def set_network(self, known: KnownModalSandbox, access: api_pb2.NetworkAccess) -> None:
        if known.box is not None:
            await known.box.set_public(_public(access))
            known.definition.network_access.CopyFrom(access)


def _public(access: api_pb2.NetworkAccess) -> bool:
    """Boxes of this machine are open or closed: an allowlist is only honoured where it allows nothing."""
    kinds = api_pb2.NetworkAccess.NetworkAccessType
    if access.network_access_type == kinds.ALLOWLIST and (access.allowed_cidrs or access.allowed_domains):
        raise refuse(Status.UNIMPLEMENTED, "this server has no allowlists")
    return access.network_access_type in (kinds.UNSPECIFIED, kinds.OPEN)


def _resources(definition: api_pb2.Sandbox) -> Resources:
    asked = definition.resources
    return Resources(
        cpus=(asked.milli_cpu_max or 0) / 1000 or None,
        memory_mb=asked.memory_mb_max or None,
    )
