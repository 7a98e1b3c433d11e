"""Templates: steps as the SDK sends them, with the files it uploaded, built into real images."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import tarfile
import threading
import uuid
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from e2b.api.client.models import (
    BuildLogEntry,
    BuildStatusReason,
    LogLevel,
    Template,
    TemplateBuild,
    TemplateBuildInfo,
    TemplateBuildStartV2,
    TemplateBuildStatus,
    TemplateWithBuilds,
)
from e2b.api.client.types import UNSET

from benchflow_core.contracts import ImageRef
from benchflow_testing_clouds.backing import Backing, BuildFailed
from benchflow_testing_clouds.e2b.schema import E2bRefusal

__all__ = ["ENVD", "KnownTemplate", "Templates"]

ENVD = "0.6.4"
DISK_MB = 10240
_LIMITS = {"cpu": (1, 8), "memory": (128, 8192)}
_PAGE = 100
_PROVISION = [
    "USER root",
    'RUN ["/bin/sh", "-c", "id user >/dev/null 2>&1 || useradd -m -s /bin/bash user || adduser -D user"]',
]
"""What the vendor does to every image: a user of that name."""


@dataclass
class KnownTemplate:
    id: str
    name: str
    cpu: int
    memory: int
    build_id: str
    status: str = "waiting"
    user: str = "user"
    workdir: str = "/home/user"
    lines: list[str] = field(default_factory=list)
    folder: Path | None = None
    image: ImageRef | None = None
    log: list[str] = field(default_factory=list)
    reason: str = ""
    created: datetime = field(default_factory=lambda: datetime.now(UTC))
    used: datetime | None = None
    count: int = 0

    def _fields(self) -> dict[str, Any]:
        return {
            "template_id": self.id, "build_id": self.build_id, "cpu_count": self.cpu, "memory_mb": self.memory,
            "disk_size_mb": DISK_MB, "public": False, "aliases": [self.name], "names": [self.name],
            "created_at": self.created, "updated_at": self.created, "created_by": None, "last_spawned_at": self.used,
            "spawn_count": self.count, "build_count": 1, "envd_version": ENVD,
            "build_status": TemplateBuildStatus(self.status),
        }  # fmt: skip

    def dto(self) -> dict[str, Any]:
        return Template(**self._fields()).to_dict()

    def with_builds(self) -> dict[str, Any]:
        build = TemplateBuild(
            build_id=uuid.UUID(self.build_id),
            status=TemplateBuildStatus(self.status),
            created_at=self.created,
            updated_at=self.created,
            cpu_count=self.cpu,
            memory_mb=self.memory,
        )
        return TemplateWithBuilds(**self._fields(), builds=[build]).to_dict()

    def info(self, offset: int) -> dict[str, Any]:
        entries = [BuildLogEntry(self.created, text, LogLevel.INFO) for text in self.log[offset : offset + _PAGE]]
        reason = BuildStatusReason(message=self.reason) if self.status == "error" else UNSET
        status = TemplateBuildStatus(self.status)
        return TemplateBuildInfo([], entries, self.id, self.build_id, status, reason).to_dict()


class Templates:
    def __init__(self, backing: Backing) -> None:
        self._backing = backing
        self.known: dict[str, KnownTemplate] = {}
        self._files: dict[str, Path] = {}
        self._uploads: Path | None = None
        self._unpacking = threading.Lock()
        self._tasks: set[asyncio.Task[None]] = set()

    def find(self, name: str) -> KnownTemplate:
        for found in self.known.values():
            if name.partition(":")[0] in (found.id, found.name):
                return found
        raise E2bRefusal(404, f"template '{name}' not found")

    def request(self, name: str, cpu: int | None, memory: int | None) -> KnownTemplate:
        """A build of a template, new or known."""
        cpu, memory = cpu or 2, memory or 1024
        for word, value in (("cpu", cpu), ("memory", memory)):
            low, high = _LIMITS[word]
            if not low <= value <= high:
                raise E2bRefusal(400, f"{word} must be from {low} to {high}, not {value}")
        if memory % 2:
            raise E2bRefusal(400, "memory must be divisible by 2")
        identity = next((found.id for found in self.known.values() if found.name == name), uuid.uuid4().hex[:20])
        template = KnownTemplate(identity, name, cpu, memory, str(uuid.uuid4()))
        self.known[identity] = template
        return template

    # --- files -----------------------------------------------------------------------------------------------------

    def has_file(self, digest: str) -> bool:
        return digest in self._files

    def place(self, digest: str) -> Path:
        if self._uploads is None:
            self._uploads = self._backing.folder("uploads")
        return self._uploads / digest

    def keep(self, digest: str) -> None:
        self._files[digest] = self.place(digest)

    # --- builds ----------------------------------------------------------------------------------------------------

    def build(self, template: KnownTemplate, asked: TemplateBuildStartV2) -> None:
        if bool(asked.from_image) == bool(asked.from_template):
            raise E2bRefusal(400, "exactly one of fromImage and fromTemplate")
        if template.status != "waiting":
            raise E2bRefusal(400, "build is not in waiting state")
        template.status = "building"
        task = asyncio.ensure_future(self._build(template, asked))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _build(self, template: KnownTemplate, asked: TemplateBuildStartV2) -> None:
        try:
            template.image = await self._make(template, asked)
            template.status = "ready"
        except BuildFailed as error:
            template.log += error.log.splitlines()
            template.reason, template.status = str(error)[-2000:], "error"
        except Exception as error:
            template.reason, template.status = f"{type(error).__name__}: {error}", "error"

    async def _make(self, template: KnownTemplate, asked: TemplateBuildStartV2) -> ImageRef:
        template.folder = self._backing.folder("template")
        steps = asked.steps or []
        if asked.from_template:
            base = self.find(str(asked.from_template))
            if base.image is None or base.folder is None:
                raise BuildFailed(f"template {base.name} is not built", "")
            template.lines, template.user, template.workdir = list(base.lines), base.user, base.workdir
            _link(base.folder, template.folder)
            if not steps:
                return base.image
        elif str(asked.from_image).startswith("benchflow.invalid/"):
            raise BuildFailed(f"failed to pull {asked.from_image}: no such host", f"FROM {asked.from_image}")
        else:
            template.lines = [f"FROM {asked.from_image}", *_PROVISION, "USER user"]
        for step in steps:
            await asyncio.to_thread(self._step, template, step)
        dockerfile = template.folder / "Dockerfile"
        dockerfile.write_text("\n".join(template.lines) + "\n")
        return await self._backing.build(dockerfile)

    def _step(self, template: KnownTemplate, step: Any) -> None:
        args, lines = list(step.args or []), template.lines
        if step.type_ == "RUN":
            run = "RUN " + json.dumps(["/bin/bash", "-c", args[0]])
            user = args[1] if len(args) > 1 else template.user
            lines += [f"USER {user}", run, f"USER {template.user}"] if user != template.user else [run]
        elif step.type_ == "COPY":
            self._copy(template, args, str(step.files_hash))
        elif step.type_ == "ENV":
            pairs = zip(args[::2], args[1::2], strict=True)
            lines.append("ENV " + " ".join(f"{name}={_quoted(value)}" for name, value in pairs))
        elif step.type_ == "WORKDIR":
            lines.append(f"WORKDIR {args[0]}")
            template.workdir = args[0]
        elif step.type_ == "USER":
            lines.append(f"USER {args[0]}")
            template.user = args[0]
        else:
            raise BuildFailed(f"unknown step {step.type_}", "")

    def _copy(self, template: KnownTemplate, args: list[str], digest: str) -> None:
        assert template.folder is not None
        name = f"files-{digest}"
        if not (template.folder / name).exists():
            _link(self._unpacked(digest), template.folder / name)
        source, target, owner, mode = (*args, "", "")[:4]
        flags = (f"--chown={owner} " if owner else "") + (f"--chmod={mode} " if mode else "")
        template.lines.append(f"COPY {flags}" + json.dumps([f"{name}/{source}", target]))

    def _unpacked(self, digest: str) -> Path:
        """What was uploaded, as a folder: most templates take the same thousand files."""
        path = self._files.get(digest)
        if path is None:
            raise BuildFailed(f"files {digest} were never uploaded", "")
        folder = path.with_name(f"{digest}.unpacked")
        with self._unpacking:
            if not folder.exists():
                with tarfile.open(path) as tar:
                    tar.extraction_filter = getattr(tarfile, "tar_filter", None)
                    tar.extractall(folder)
        return folder


def _link(source: Path, target: Path) -> None:
    shutil.copytree(source, target, copy_function=os.link, dirs_exist_ok=True, symlinks=True)


def _quoted(value: str) -> str:
    """Variables in it are still replaced."""
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
