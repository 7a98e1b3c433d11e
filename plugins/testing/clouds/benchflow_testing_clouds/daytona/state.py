"""What the vendor knows: sandboxes and snapshots, and the real boxes and images behind them."""

from __future__ import annotations

import asyncio
import hashlib
import tarfile
import time
import uuid
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from daytona_api_client_async import BuildInfo, CreateSandbox, CreateSnapshot, Sandbox, SnapshotDto

from benchflow_core.contracts import ImageRef, Resources
from benchflow_testing_clouds.backing import BackedBox, Backing, BuildFailed
from benchflow_testing_clouds.daytona.schema import render
from benchflow_testing_clouds.daytona.storage import Storage

__all__ = ["ORGANIZATION", "DaytonaWorld", "KnownSandbox", "KnownSnapshot", "Quota"]

ORGANIZATION = "0b6f3a52-7a2c-4f52-9d1c-6f0f7f3f2a10"
DEFAULT_SNAPSHOT = "daytonaio/sandbox"
_DEFAULT_IMAGE = "debian:bookworm-slim"
LIMITS = {"cpu": 4, "memory": 8, "disk": 10}
"""Of one sandbox, in cores and GB, for an organization without more."""


class DaytonaRefusal(Exception):
    def __init__(self, status: int, message: str, code: str = "") -> None:
        super().__init__(message)
        self.status, self.message, self.code = status, message, code


@dataclass
class Quota:
    """How many sandboxes the organization may have at once."""

    sandboxes: int = 10_000


@dataclass
class KnownSnapshot:
    id: str
    name: str
    size: dict[str, int]
    build: dict[str, Any] | None = None
    image_name: str | None = None
    state: str = "pending"
    error: str | None = None
    image: ImageRef | None = None
    log: str = ""
    created: datetime = field(default_factory=lambda: datetime.now(UTC))

    def dto(self) -> dict[str, Any]:
        return render(
            SnapshotDto,
            id=self.id,
            organization_id=ORGANIZATION,
            general=False,
            name=self.name,
            image_name=self.image_name,
            state=self.state,
            size=0.1,
            entrypoint=None,
            cpu=self.size["cpu"],
            gpu=0,
            mem=self.size["memory"],
            disk=self.size["disk"],
            error_reason=self.error,
            created_at=self.created,
            updated_at=self.created,
            last_used_at=self.created,
            build_info=_build_info(self.build) if self.build else None,
            source_sandbox_id=None,
        )


def _build_info(build: dict[str, Any]) -> BuildInfo:
    now = datetime.now(UTC)
    return BuildInfo(
        dockerfile_content=build["dockerfile"],
        context_hashes=build["hashes"],
        created_at=now,
        updated_at=now,
        snapshot_ref=build["ref"],
    )


@dataclass
class KnownSandbox:
    id: str
    name: str
    asked: CreateSandbox
    size: dict[str, int]
    state: str = "creating"
    error: str | None = None
    blocked: bool = False
    allow: str | None = None
    domains: str | None = None
    box: BackedBox | None = None
    created: float = field(default_factory=time.time)
    activity: float = field(default_factory=time.time)

    def dto(self, toolbox: str) -> dict[str, Any]:
        asked, when = self.asked, datetime.fromtimestamp(self.created, UTC).isoformat()
        return render(
            Sandbox,
            id=self.id,
            organization_id=ORGANIZATION,
            name=self.name,
            snapshot=asked.snapshot,
            user=asked.user or "root",
            env=asked.env or {},
            labels=asked.labels or {},
            public=bool(asked.public),
            network_block_all=self.blocked,
            kvm=False,
            network_allow_list=self.allow,
            domain_allow_list=self.domains,
            target=asked.target or "us",
            cpu=self.size["cpu"],
            gpu=asked.gpu or 0,
            memory=self.size["memory"],
            disk=self.size["disk"],
            state=self.state,
            desired_state="destroyed" if self.state in ("destroying", "destroyed") else "started",
            error_reason=self.error,
            auto_stop_interval=asked.auto_stop_interval,
            auto_archive_interval=asked.auto_archive_interval,
            auto_delete_interval=asked.auto_delete_interval,
            created_at=when,
            updated_at=when,
            last_activity_at=datetime.fromtimestamp(self.activity, UTC).isoformat(),
            toolbox_proxy_url=toolbox,
        )


class DaytonaWorld:
    def __init__(self, backing: Backing, quota: Quota) -> None:
        self.backing, self.quota = backing, quota
        self.sandboxes: dict[str, KnownSandbox] = {}
        self.snapshots: dict[str, KnownSnapshot] = {}
        self.storage: Storage | None = None
        self._images: dict[str, asyncio.Task[ImageRef]] = {}

    def sandbox(self, name: str) -> KnownSandbox:
        for found in self.sandboxes.values():
            if name in (found.id, found.name):
                return found
        raise DaytonaRefusal(404, f"Sandbox with ID or name {name} not found")

    def snapshot(self, name: str) -> KnownSnapshot:
        for found in self.snapshots.values():
            if name in (found.id, found.name):
                return found
        raise DaytonaRefusal(404, f"Snapshot with name {name} not found")

    # --- images ----------------------------------------------------------------------------------------------------

    def _size(self, asked: CreateSandbox | CreateSnapshot, otherwise: dict[str, int]) -> dict[str, int]:
        size = {name: getattr(asked, name) or otherwise[name] for name in LIMITS}
        for name, most in LIMITS.items():
            if size[name] > most:
                raise DaytonaRefusal(
                    400, f"{name.capitalize()} request {size[name]} exceeds maximum allowed per sandbox ({most})"
                )
        return size

    def add_snapshot(self, asked: CreateSnapshot) -> KnownSnapshot:
        if any(found.name == asked.name for found in self.snapshots.values()):
            raise DaytonaRefusal(409, f'Snapshot with name "{asked.name}" already exists for this organization')
        size = self._size(asked, {"cpu": 1, "memory": 1, "disk": 3})
        snapshot = KnownSnapshot(str(uuid.uuid4()), asked.name, size)
        if asked.build_info is not None:
            snapshot.build = self._build(asked.build_info.dockerfile_content, asked.build_info.context_hashes or [])
        else:
            snapshot.image_name = asked.image_name
        snapshot.state = "building" if snapshot.build else "pulling"
        self.snapshots[snapshot.id] = snapshot
        return snapshot

    @staticmethod
    def _build(dockerfile: str, hashes: list[str]) -> dict[str, Any]:
        ref = hashlib.sha256("\n".join([dockerfile, *hashes]).encode()).hexdigest()[:16]
        return {"dockerfile": dockerfile, "hashes": list(hashes), "ref": ref}

    async def make(self, snapshot: KnownSnapshot) -> None:
        """Until it is active or failed."""
        try:
            snapshot.image = await self._image(snapshot.build, snapshot.image_name)
            snapshot.state = "active"
        except BuildFailed as error:
            snapshot.state = "build_failed" if snapshot.build else "error"
            snapshot.log, snapshot.error = error.log, str(error)[-2000:]

    async def _image(self, build: dict[str, Any] | None, name: str | None) -> ImageRef:
        """Equal builds are one."""
        key = build["ref"] if build else f"image {name}"
        if key not in self._images:
            self._images[key] = asyncio.ensure_future(self._build_now(build) if build else self._pull(str(name)))
        try:
            return await asyncio.shield(self._images[key])
        except BuildFailed:
            self._images.pop(key, None)
            raise

    async def _pull(self, name: str) -> ImageRef:
        if name.startswith("benchflow.invalid/"):
            raise BuildFailed(f"failed to pull image {name}: no such host", "")
        return await self.backing.pull(_DEFAULT_IMAGE if name == DEFAULT_SNAPSHOT else name)

    async def _build_now(self, build: dict[str, Any]) -> ImageRef:
        assert self.storage is not None
        folder = self.backing.folder("build")
        dockerfile = folder / "Dockerfile"
        dockerfile.write_text(build["dockerfile"])
        for digest in build["hashes"]:
            path = self.storage.context(ORGANIZATION, digest)
            if not path.exists():
                raise BuildFailed(f"context {digest} was never uploaded", "")
            await asyncio.to_thread(_unpack, path, folder)
        if "FROM benchflow.invalid/" in build["dockerfile"]:
            line = build["dockerfile"].splitlines()[0]
            raise BuildFailed(f"failed to solve: {line[5:]}: no such host", line)
        return await self.backing.build(dockerfile)

    # --- sandboxes -------------------------------------------------------------------------------------------------

    def add_sandbox(self, asked: CreateSandbox) -> KnownSandbox:
        live = [found for found in self.sandboxes.values() if found.state not in ("destroyed", "error", "build_failed")]
        if len(live) >= self.quota.sandboxes:
            raise DaytonaRefusal(403, "Total CPU limit exceeded. Maximum allowed: 10.", "QUOTA_EXCEEDED")
        if asked.snapshot and asked.build_info is None:
            if asked.cpu or asked.memory or asked.disk:
                raise DaytonaRefusal(400, "Cannot specify Sandbox resources when using a snapshot")
            snapshot = self.snapshot(asked.snapshot)
            if snapshot.state != "active":
                raise DaytonaRefusal(400, f"Snapshot {asked.snapshot} is {snapshot.state}")
            size = snapshot.size
        else:
            size = self._size(asked, {"cpu": 1, "memory": 1, "disk": 3})
        identity = str(uuid.uuid4())
        sandbox = KnownSandbox(identity, asked.name or identity, asked, size)
        sandbox.blocked, sandbox.allow = bool(asked.network_block_all), asked.network_allow_list
        sandbox.domains = asked.domain_allow_list
        self.sandboxes[identity] = sandbox
        return sandbox

    async def start(self, sandbox: KnownSandbox) -> None:
        """Until it runs or failed."""
        asked = sandbox.asked
        try:
            if asked.build_info is not None:
                build = self._build(asked.build_info.dockerfile_content, asked.build_info.context_hashes or [])
                image = await self._image(build, None)
            elif asked.snapshot:
                found = self.snapshot(asked.snapshot).image
                assert found is not None
                image = found
            else:
                image = await self._image(None, DEFAULT_SNAPSHOT)
            limits = Resources(cpus=sandbox.size["cpu"], memory_mb=sandbox.size["memory"] * 1024)
            box = await self.backing.start(
                sandbox.id, image, env=asked.env, public=not sandbox.blocked, resources=limits
            )
        except BuildFailed as error:
            sandbox.state, sandbox.error = "build_failed", str(error)[-2000:]
            return
        except Exception as error:
            sandbox.state, sandbox.error = "error", str(error)[-2000:]
            return
        if sandbox.id not in self.sandboxes:  # deleted meanwhile
            await self.backing.stop(sandbox.id)
            return
        sandbox.box, sandbox.state = box, "started"

    async def remove(self, sandbox: KnownSandbox) -> None:
        self.sandboxes.pop(sandbox.id, None)
        sandbox.state = "destroyed"
        await self.backing.stop(sandbox.id)


def _unpack(path: Path, folder: Path) -> None:
    """As the vendor's runner does it: folders are passed over, a link becomes an empty file, a Dockerfile takes the
    place of the one that was sent with the request."""
    with tarfile.open(path) as tar:
        tar.extraction_filter = getattr(tarfile, "tar_filter", None)
        for member in tar:
            if member.issym() or member.islnk():
                member.type, member.size = tarfile.REGTYPE, 0
            if not member.isdir():
                tar.extract(member, folder)
