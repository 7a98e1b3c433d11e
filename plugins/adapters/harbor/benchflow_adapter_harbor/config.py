"""The tables of a task's config, as read: names and defaults are Harbor's, with BenchFlow's additions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from benchflow_core.contracts.quick import dataclass

EnvTable = Mapping[str, str]


def _empty() -> dict[str, Any]:
    return {}


@dataclass(frozen=True, slots=True)
class Author:
    name: str
    email: str | None = None


@dataclass(frozen=True, slots=True)
class Package:
    name: str
    version: str | None = None
    description: str = ""
    authors: tuple[Author, ...] = ()
    keywords: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Agent:
    timeout_sec: float | None = None
    user: str | None = None
    network_mode: str | None = None
    allowed_hosts: tuple[str, ...] | None = None
    prompt_prefix: str | None = None


@dataclass(frozen=True, slots=True)
class Health:
    command: str
    interval_sec: float = 5.0
    timeout_sec: float = 30.0
    start_period_sec: float = 0.0
    start_interval_sec: float = 5.0
    retries: int = 3


@dataclass(frozen=True, slots=True)
class Tpu:
    type: str
    topology: str


@dataclass(frozen=True, slots=True)
class Mcp:
    name: str
    transport: str = "sse"
    url: str | None = None
    command: str | None = None
    args: tuple[str, ...] = ()
    cwd: str | None = None
    env: EnvTable = field(default_factory=_empty)
    headers: EnvTable = field(default_factory=_empty)
    tools: tuple[str, ...] | None = None
    include_tags: tuple[str, ...] | None = None
    exclude_tags: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Setup:
    command: str
    timeout_sec: float = 600.0
    cwd: str | None = None
    env: EnvTable = field(default_factory=_empty)
    user: str | None = None
    service: str = "main"
    host_lock: str | None = None


@dataclass(frozen=True, slots=True)
class Environment:
    network_mode: str | None = None
    """`None`: not written, which means public."""
    allowed_hosts: tuple[str, ...] | None = None
    build_timeout_sec: float = 600.0
    docker_image: str | None = None
    os: str | None = None
    """`None`: not written, which means linux."""
    cpus: int | None = None
    memory_mb: int | None = None
    storage_mb: int | None = None
    gpus: int | None = None
    gpu_types: tuple[str, ...] | None = None
    tpu: Tpu | None = None
    mcp_servers: tuple[Mcp, ...] = ()
    env: EnvTable = field(default_factory=_empty)
    skills_dir: str | None = None
    healthcheck: Health | None = None
    workdir: str | None = None
    setup_commands: tuple[Setup, ...] = ()
    bugswarm_image_tag: str | None = None


@dataclass(frozen=True, slots=True)
class Collect:
    command: str
    service: str = "main"
    timeout_sec: float = 60.0
    user: str | None = None


@dataclass(frozen=True, slots=True)
class Judge:
    model: str = "claude-sonnet-4-6"
    rubric_path: str = "tests/rubric.toml"
    input_dir: str = "/app"
    input_type: str = "deliverables"
    context: str = ""


@dataclass(frozen=True, slots=True)
class Verifier:
    timeout_sec: float | None = None
    """`None`: not written, which means 600."""
    env: EnvTable = field(default_factory=_empty)
    user: str | None = None
    network_mode: str | None = None
    allowed_hosts: tuple[str, ...] | None = None
    environment_mode: str | None = None
    environment: Environment | None = None
    collect: tuple[Collect, ...] = ()
    type: str | None = None
    service: str = "main"
    reward_range: tuple[float, float] | None = None
    judge: Judge | None = None
    memory: Mapping[str, Any] = field(default_factory=_empty)
    hardening: Mapping[str, Any] = field(default_factory=_empty)
    pytest_plugins: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SolutionTable:
    env: EnvTable = field(default_factory=_empty)
    timeout_sec: float | None = None


@dataclass(frozen=True, slots=True)
class ArtifactEntry:
    source: str
    destination: str | None = None
    exclude: tuple[str, ...] = ()
    service: str | None = None


@dataclass(frozen=True, slots=True)
class StepTable:
    name: str
    agent: Agent = field(default_factory=Agent)
    verifier: Verifier = field(default_factory=Verifier)
    min_reward: float | Mapping[str, float] | None = None
    healthcheck: Health | None = None
    artifacts: tuple[ArtifactEntry, ...] = ()


@dataclass(frozen=True, slots=True)
class Config:
    schema_version: str | None = None
    task: Package | None = None
    metadata: Mapping[str, Any] = field(default_factory=_empty)
    verifier: Verifier = field(default_factory=Verifier)
    agent: Agent = field(default_factory=Agent)
    environment: Environment = field(default_factory=Environment)
    solution: SolutionTable = field(default_factory=SolutionTable)
    source: str | None = None
    reward: Mapping[str, Any] = field(default_factory=_empty)
    multi_step_reward_strategy: str | None = None
    steps: tuple[StepTable, ...] | None = None
    artifacts: tuple[ArtifactEntry, ...] = ()
