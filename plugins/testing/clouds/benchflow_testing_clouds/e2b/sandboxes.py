"""Sandboxes as the vendor knows them, each with a real box and an end."""

from __future__ import annotations

import asyncio
import secrets
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from e2b.api.client.models import ListedSandbox, NewSandboxV2, Sandbox, SandboxDetail, SandboxState

from benchflow_core.contracts import Resources
from benchflow_core.errors import BenchflowError
from benchflow_testing_clouds.backing import BackedBox, Backing
from benchflow_testing_clouds.e2b.schema import E2bRefusal
from benchflow_testing_clouds.e2b.templates import DISK_MB, ENVD, KnownTemplate, Templates

__all__ = ["KnownSandbox", "Sandboxes"]

CLIENT = "6532622b"
LONGEST = 24 * 3600
"""Seconds that a sandbox may live."""


@dataclass
class KnownSandbox:
    id: str
    template: KnownTemplate
    asked: NewSandboxV2
    token: str
    box: BackedBox
    end: datetime
    started: datetime = field(default_factory=lambda: datetime.now(UTC))
    expiry: asyncio.Task[None] | None = None

    @property
    def metadata(self) -> dict[str, str]:
        return dict(self.asked.metadata or {})

    def created(self) -> dict[str, Any]:
        return Sandbox(
            self.template.id, self.id, CLIENT, ENVD, alias=self.template.name, envd_access_token=self.token, domain=None
        ).to_dict()

    def _fields(self) -> dict[str, Any]:
        return {
            "template_id": self.template.id, "sandbox_id": self.id, "client_id": CLIENT, "started_at": self.started,
            "end_at": self.end, "envd_version": ENVD, "cpu_count": self.template.cpu,
            "memory_mb": self.template.memory, "disk_size_mb": DISK_MB, "state": SandboxState.RUNNING,
            "alias": self.template.name, "metadata": self.metadata,
        }  # fmt: skip

    def listed(self) -> dict[str, Any]:
        return ListedSandbox(**self._fields()).to_dict()

    def detail(self) -> dict[str, Any]:
        return SandboxDetail(**self._fields(), envd_access_token=self.token).to_dict()


class Sandboxes:
    def __init__(self, backing: Backing, templates: Templates) -> None:
        self._backing, self._templates = backing, templates
        self.known: dict[str, KnownSandbox] = {}
        self._keys: dict[str, KnownSandbox] = {}
        """Idempotency keys to what was made for them."""

    def find(self, identity: str) -> KnownSandbox:
        if identity not in self.known:
            raise E2bRefusal(404, f"sandbox '{identity}' not found")
        return self.known[identity]

    async def create(self, asked: NewSandboxV2, key: str | None) -> KnownSandbox:
        if key and key in self._keys:
            return self._keys[key]
        template = self._templates.find(asked.template_id)
        if template.image is None:
            raise E2bRefusal(400, f"template '{template.name}' has no finished build")
        seconds = _seconds(asked.timeout if isinstance(asked.timeout, int) else 300)
        identity = "i" + secrets.token_hex(9)
        limits = Resources(cpus=template.cpu, memory_mb=template.memory)
        public = asked.allow_internet_access is not False
        env = {str(name): str(value) for name, value in dict(asked.env_vars or {}).items()}
        try:
            box = await self._backing.start(identity, template.image, env=env, public=public, resources=limits)
        except BenchflowError as error:
            raise E2bRefusal(500, f"failed to create sandbox: {error.message}") from error
        template.count, template.used = template.count + 1, datetime.now(UTC)
        sandbox = KnownSandbox(identity, template, asked, secrets.token_hex(16), box, datetime.now(UTC))
        self.known[identity] = sandbox
        self.live(sandbox, seconds)
        if key:
            self._keys[key] = sandbox
        return sandbox

    def live(self, sandbox: KnownSandbox, seconds: int) -> None:
        """From now on, so long; then it ends."""
        sandbox.end = datetime.now(UTC) + timedelta(seconds=_seconds(seconds))
        if sandbox.expiry is not None:
            sandbox.expiry.cancel()

        async def expire() -> None:
            await asyncio.sleep(seconds)
            sandbox.expiry = None
            await self.remove(sandbox)

        sandbox.expiry = asyncio.ensure_future(expire())

    async def remove(self, sandbox: KnownSandbox) -> None:
        self.known.pop(sandbox.id, None)
        if sandbox.expiry is not None:
            sandbox.expiry.cancel()
        await self._backing.stop(sandbox.id)


def _seconds(timeout: Any) -> int:
    if not isinstance(timeout, int) or timeout < 0:
        raise E2bRefusal(400, "timeout must be a whole number of seconds")
    if timeout > LONGEST:
        raise E2bRefusal(400, f"Timeout cannot be greater than {LONGEST // 3600} hours")
    return timeout
