"""The fields of an agent's TOML manifest. Imported only when one is read: pydantic is heavy."""

from __future__ import annotations

from typing import Annotated, Literal

# ruff: noqa: TID253
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from benchflow_core.contracts.gateways import Wire

Name = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9.+-]*$")]
Pinned = Annotated[str, StringConstraints(pattern=r"^(@[\w.-]+/)?[\w.-]+@\d[\w.+-]*$")]
Argv = Annotated[tuple[str, ...], Field(min_length=1)]


class Install(BaseModel):
    """What is put into the box, once, as a cached layer."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    npm: tuple[Pinned, ...] = ()
    """Packages as `name@version`, with a Node of their own."""
    lock: str | None = None
    """Their `package-lock.json`, beside the manifest: what they depend on is then pinned too."""
    run: tuple[Argv, ...] = ()
    """Further commands; `${prefix}` is where they install to."""


class AgentManifest(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Name
    version: Annotated[str, StringConstraints(min_length=1)]
    launch: Argv
    description: str = ""
    install: Install = Install()
    env: dict[str, str] = {}
    files: dict[str, str] = {}
    wires: tuple[Wire, ...] = ()
    requires_env: tuple[str, ...] = ()
    default_model: str | None = None
    model_in_session: Literal["", "set_model", "config_option"] = ""
    session_mode: str | None = None
    mcp: Literal["acp", ""] = "acp"
    skill_paths: tuple[str, ...] = ()
    helper_models: tuple[str, ...] = ()
    errors_are_silent: bool = False
    reports_version: bool = False
    handshake_timeout: float = 60.0
