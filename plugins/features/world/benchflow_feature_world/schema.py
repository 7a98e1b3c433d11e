"""The fields of an environment manifest. Every one of them is acted upon; an unknown one is refused."""

# ruff: noqa: TID253
from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, field_validator, model_validator

__all__ = ["DeclaredState", "Environment", "ForwardEnv", "Readiness", "Service", "TaskSelection"]

Port = Annotated[int, Field(ge=1, le=65535, strict=True)]
Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
_LOCAL = re.compile(r"https?://(localhost|127\.0\.0\.1|0\.0\.0\.0|\[::1\])(:\d+)?(/.*)?")


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Service(_Model):
    """One server that the framework starts."""

    name: Name
    command: str
    """A shell command; its first word is the program, and where that is not installed the service is left out."""
    port: Port
    health_path: str = "/health"

    @field_validator("command")
    @classmethod
    def _not_empty(cls, value: str) -> str:
        if not value.strip():
            raise ValueError("the command is empty")
        return value

    @field_validator("health_path")
    @classmethod
    def _absolute(cls, value: str) -> str:
        if not value.startswith("/"):
            raise ValueError("a path begins with '/'")
        return value


class TaskSelection(_Model):
    """How the world learns which task it is for."""

    mechanism: Literal["image", "env_var"] = "env_var"
    key: str = "BENCHFLOW_TASK_ID"
    inject_into: Literal["entrypoint", "exec"] = "entrypoint"
    """`entrypoint`: the variable is set for the world's own processes; `exec`: for what is run in the agent's box."""


class Readiness(_Model):
    """All of these hold before the agent starts."""

    http: tuple[str, ...] = ()
    tcp: tuple[Port, ...] = ()
    command: tuple[str, ...] = ()
    """Shell commands that exit 0 in the world's box."""
    timeout_sec: float = Field(default=120.0, gt=0, le=86400)

    @field_validator("http")
    @classmethod
    def _own(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for url in value:
            if not _LOCAL.fullmatch(url):
                raise ValueError(
                    f"'{url}' is not an http address of the world itself, like http://localhost:8023/health"
                )
        return value


class ForwardEnv(_Model):
    """Host variables that the world asks for. Each reaches it only when the user allows it."""

    keys: tuple[str, ...] = ()


class DeclaredState(_Model):
    """What `snapshot`, `restore` and `reset` are about."""

    kind: str = "sqlite"
    paths: tuple[str, ...] = ()

    @field_validator("paths")
    @classmethod
    def _absolute(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for path in value:
            if not path.startswith("/") or ".." in path.split("/"):
                raise ValueError(f"'{path}' is not an absolute path")
        return value


class Environment(_Model):
    """The `[environment]` table."""

    name: Name
    image: str | None = None
    """What the world runs on."""
    base_image: str | None = None
    """What the tasks' own images are built from; also the world's, where a task has none."""
    ports: tuple[Port, ...] = ()
    """Shown in the agent's box, besides those of the services."""
    services: tuple[Service, ...] = ()
    owns_lifecycle: bool = True
    """The image starts its services itself; otherwise the framework starts those listed."""
    keep_alive: bool = True
    """The world goes on when the image's own process ends; otherwise that end is a failure of the world."""
    isolation: Literal["per_task", "persistent"] = "per_task"
    """`persistent`: one world for all rollouts of a job, and what one changed the next one finds."""
    task_selection: TaskSelection = TaskSelection()
    readiness: Readiness = Readiness()
    forward_env: ForwardEnv = ForwardEnv()
    state: DeclaredState = DeclaredState()

    @model_validator(mode="after")
    def _whole(self) -> Environment:
        if self.image is None and self.base_image is None:
            raise ValueError("one of 'image' and 'base_image' is needed")
        if not self.owns_lifecycle and not self.services:
            raise ValueError("'owns_lifecycle = false' needs services to start")
        if self.owns_lifecycle and self.services:
            raise ValueError("services are listed, and owns_lifecycle says that the image starts them: set it false")
        for what in ("name", "port"):
            values = [getattr(service, what) for service in self.services]
            if twice := [value for value in values if values.count(value) > 1]:
                raise ValueError(f"two services have the {what} {twice[0]}")
        return self
