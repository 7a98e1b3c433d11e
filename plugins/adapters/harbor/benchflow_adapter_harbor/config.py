"""A task's config in both formats: `task.toml`, and with BenchFlow's additions the frontmatter of `task.md`.

Names and defaults are Harbor's. A field's type says how its value is read (`readers.reader_of`); `Annotated` names
another reader. `EXTENSION` marks keys beyond Harbor's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Annotated, Any

from benchflow_adapter_harbor import rules
from benchflow_adapter_harbor.hosts import host
from benchflow_adapter_harbor.readers import (
    EXTENSION,
    filled_text,
    limit,
    list_of,
    one_of,
    optional,
    reader_of,
    user,
)
from benchflow_core.contracts.quick import dataclass

__all__ = ["ArtifactEntry", "StepTable", "TaskConfig", "read_config"]

EnvTable = Mapping[str, str]
_Filled = Annotated[str, filled_text]
_Limit = Annotated[float, limit]
_OptionalLimit = Annotated[float | None, optional(limit)]
_User = Annotated[str | None, optional(user)]
_Service = Annotated[str, rules.service]
_network_mode = one_of("public", "no-network", "allowlist")
_Mode = Annotated[str | None, optional(_network_mode)]
_Hosts = Annotated[tuple[str, ...] | None, optional(list_of(host))]


def _empty() -> dict[str, Any]:
    return {}


@dataclass(frozen=True, slots=True)
class AuthorTable:
    name: str
    email: str | None = None


@dataclass(frozen=True, slots=True)
class PackageTable:
    name: Annotated[str, rules.package_name]
    version: Annotated[str | None, optional(filled_text)] = None
    description: str = ""
    authors: tuple[AuthorTable, ...] = ()
    keywords: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AgentTable:
    timeout_sec: _OptionalLimit = None
    user: _User = None
    network_mode: _Mode = None
    allowed_hosts: _Hosts = None
    prompt_prefix: Annotated[str | None, optional(filled_text), EXTENSION] = None
    check = rules.check_own_network


@dataclass(frozen=True, slots=True)
class HealthTable:
    command: str
    interval_sec: float = 5.0
    timeout_sec: float = 30.0
    start_period_sec: float = 0.0
    start_interval_sec: float = 5.0
    retries: int = 3


@dataclass(frozen=True, slots=True)
class TpuTable:
    type: _Filled
    topology: Annotated[str, rules.topology]


@dataclass(frozen=True, slots=True)
class McpTable:
    name: str
    transport: Annotated[str, rules.transport] = "sse"
    url: str | None = None
    command: str | None = None
    args: tuple[str, ...] = ()
    cwd: Annotated[str | None, EXTENSION] = None
    env: Annotated[EnvTable, EXTENSION] = field(default_factory=_empty)
    headers: Annotated[EnvTable, EXTENSION] = field(default_factory=_empty)
    tools: Annotated[tuple[str, ...] | None, EXTENSION] = None
    include_tags: Annotated[tuple[str, ...] | None, EXTENSION] = None
    exclude_tags: Annotated[tuple[str, ...] | None, EXTENSION] = None
    check = rules.check_mcp


@dataclass(frozen=True, slots=True)
class SetupTable:
    command: _Filled
    timeout_sec: _Limit = 600.0
    cwd: Annotated[str | None, optional(rules.absolute)] = None
    env: EnvTable = field(default_factory=_empty)
    user: _User = None
    service: _Service = "main"
    host_lock: Annotated[str | None, optional(filled_text)] = None
    prepare = staticmethod(rules.refuse_captures)


@dataclass(frozen=True, slots=True)
class EnvironmentTable:
    network_mode: Annotated[str | None, _network_mode] = None
    """`None`: not written, which means public."""
    allowed_hosts: _Hosts = None
    build_timeout_sec: _Limit = 600.0
    docker_image: str | None = None
    os: Annotated[str | None, one_of("linux", "windows", fold=True)] = None
    """`None`: not written, which means linux."""
    cpus: int | None = None
    memory_mb: int | None = None
    storage_mb: int | None = None
    gpus: int | None = None
    gpu_types: tuple[str, ...] | None = None
    tpu: TpuTable | None = None
    mcp_servers: tuple[McpTable, ...] = ()
    env: EnvTable = field(default_factory=_empty)
    skills_dir: str | None = None
    healthcheck: HealthTable | None = None
    workdir: str | None = None
    setup_commands: Annotated[tuple[SetupTable, ...], EXTENSION] = ()
    bugswarm_image_tag: Annotated[str | None, EXTENSION] = None
    prepare = staticmethod(rules.prepare_environment)
    check = rules.check_environment


@dataclass(frozen=True, slots=True)
class CollectTable:
    command: str
    service: _Service = "main"
    timeout_sec: _Limit = 60.0
    user: _User = None


@dataclass(frozen=True, slots=True)
class JudgeTable:
    model: _Filled = "claude-sonnet-4-6"
    rubric_path: _Filled = "tests/rubric.toml"
    input_dir: _Filled = "/app"
    input_type: Annotated[str, one_of("deliverables")] = "deliverables"
    context: str = ""


@dataclass(frozen=True, slots=True)
class VerifierTable:
    timeout_sec: _OptionalLimit = None
    """`None`: not written, which means 600."""
    env: EnvTable = field(default_factory=_empty)
    user: _User = None
    network_mode: _Mode = None
    allowed_hosts: _Hosts = None
    environment_mode: Annotated[str | None, optional(one_of("shared", "separate"))] = None
    environment: EnvironmentTable | None = None
    collect: tuple[CollectTable, ...] = ()
    type: Annotated[str | None, one_of("test-script", "llm-judge"), EXTENSION] = None
    service: Annotated[str, rules.service, EXTENSION] = "main"
    reward_range: Annotated[tuple[float, float] | None, optional(rules.reward_range), EXTENSION] = None
    judge: Annotated[JudgeTable | None, EXTENSION] = None
    memory: Annotated[Mapping[str, Any], EXTENSION] = field(default_factory=_empty)
    hardening: Annotated[Mapping[str, Any], EXTENSION] = field(default_factory=_empty)
    pytest_plugins: Annotated[tuple[str, ...], EXTENSION] = ()
    prepare = staticmethod(rules.rename_sandbox_mode)
    check = rules.check_verifier


@dataclass(frozen=True, slots=True)
class SolutionTable:
    env: EnvTable = field(default_factory=_empty)
    timeout_sec: Annotated[float | None, optional(limit), EXTENSION] = None
    prepare = staticmethod(rules.inline_solution_env)


@dataclass(frozen=True, slots=True)
class ArtifactEntry:
    source: Annotated[str, rules.artifact_source]
    destination: Annotated[str | None, optional(rules.artifact_destination)] = None
    exclude: tuple[str, ...] = ()
    service: Annotated[str | None, optional(rules.service)] = None
    short = "source"
    check = rules.check_artifact


@dataclass(frozen=True, slots=True)
class StepTable:
    name: Annotated[str, rules.step_name]
    agent: AgentTable = field(default_factory=AgentTable)
    verifier: VerifierTable = field(default_factory=VerifierTable)
    min_reward: Annotated[float | Mapping[str, float] | None, optional(rules.min_reward)] = None
    healthcheck: HealthTable | None = None
    artifacts: tuple[ArtifactEntry, ...] = ()


@dataclass(frozen=True, slots=True)
class TaskConfig:
    schema_version: Annotated[str | None, rules.schema_version] = None
    task: PackageTable | None = None
    metadata: Mapping[str, Any] = field(default_factory=_empty)
    verifier: VerifierTable = field(default_factory=VerifierTable)
    agent: AgentTable = field(default_factory=AgentTable)
    environment: EnvironmentTable = field(default_factory=EnvironmentTable)
    solution: SolutionTable = field(default_factory=SolutionTable)
    source: str | None = None
    reward: Annotated[Mapping[str, Any], EXTENSION] = field(default_factory=_empty)
    multi_step_reward_strategy: Annotated[str | None, optional(one_of("mean", "final"))] = None
    steps: tuple[StepTable, ...] | None = None
    artifacts: tuple[ArtifactEntry, ...] = ()
    prepare = staticmethod(rules.prepare_root)
    check = rules.check_root


read_config = reader_of(TaskConfig)
"""`read_config(data, (), report) -> TaskConfig`; problems are in the report."""
