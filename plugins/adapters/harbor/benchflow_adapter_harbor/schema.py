"""How the config of both formats is read: `task.toml`, and with BenchFlow's additions the frontmatter of `task.md`."""

from __future__ import annotations

from benchflow_adapter_harbor import rules
from benchflow_adapter_harbor.config import (
    Agent,
    ArtifactEntry,
    Author,
    Collect,
    Config,
    Environment,
    Health,
    Judge,
    Mcp,
    Package,
    Setup,
    SolutionTable,
    StepTable,
    Tpu,
    Verifier,
)
from benchflow_adapter_harbor.hosts import host
from benchflow_adapter_harbor.readers import (
    Reader,
    any_table,
    filled_text,
    integer,
    limit,
    list_of,
    one_of,
    optional,
    seconds,
    table,
    text,
    text_table,
    user,
)

_texts = list_of(text)
_network: dict[str, Reader] = {
    "network_mode": optional(one_of("public", "no-network", "allowlist")),
    "allowed_hosts": optional(list_of(host)),
}
_author = table(Author, {"name": text, "email": optional(text)}, required=("name",))
_package = table(
    Package,
    {
        "name": rules.package_name,
        "version": optional(filled_text),
        "description": text,
        "authors": list_of(_author),
        "keywords": _texts,
    },
    required=("name",),
)
_agent = table(
    Agent,
    {"timeout_sec": optional(limit), "user": optional(user), **_network},
    extensions={"prompt_prefix": optional(filled_text)},
    finish=rules.finish_network,
)
_health = table(
    Health,
    {
        "command": text,
        "interval_sec": seconds,
        "timeout_sec": seconds,
        "start_period_sec": seconds,
        "start_interval_sec": seconds,
        "retries": integer,
    },
    required=("command",),
)
_tpu = table(Tpu, {"type": filled_text, "topology": rules.topology}, required=("type", "topology"))
_mcp = table(
    Mcp,
    {
        "name": text,
        "transport": rules.transport,
        "url": optional(text),
        "command": optional(text),
        "args": _texts,
    },
    extensions={
        "cwd": optional(text),
        "env": text_table,
        "headers": text_table,
        "tools": optional(_texts),
        "include_tags": optional(_texts),
        "exclude_tags": optional(_texts),
    },
    required=("name",),
    finish=rules.finish_mcp,
)
_setup = table(
    Setup,
    {
        "command": filled_text,
        "timeout_sec": limit,
        "cwd": optional(rules.absolute),
        "env": text_table,
        "user": optional(user),
        "service": rules.service,
        "host_lock": optional(filled_text),
    },
    required=("command",),
    prepare=rules.refuse_captures,
)
_environment = table(
    Environment,
    {
        "network_mode": one_of("public", "no-network", "allowlist"),
        "allowed_hosts": optional(list_of(host)),
        "build_timeout_sec": limit,
        "docker_image": optional(text),
        "os": one_of("linux", "windows", fold=True),
        "cpus": optional(integer),
        "memory_mb": optional(integer),
        "storage_mb": optional(integer),
        "gpus": optional(integer),
        "gpu_types": optional(_texts),
        "tpu": optional(_tpu),
        "mcp_servers": list_of(_mcp),
        "env": text_table,
        "skills_dir": optional(text),
        "healthcheck": optional(_health),
        "workdir": optional(text),
    },
    extensions={"setup_commands": list_of(_setup), "bugswarm_image_tag": optional(text)},
    prepare=rules.prepare_environment,
    finish=rules.finish_environment,
)
_collect = table(
    Collect,
    {"command": text, "service": rules.service, "timeout_sec": limit, "user": optional(user)},
    required=("command",),
)
_judge = table(
    Judge,
    {
        "model": filled_text,
        "rubric_path": filled_text,
        "input_dir": filled_text,
        "input_type": one_of("deliverables"),
        "context": text,
    },
)
_verifier = table(
    Verifier,
    {
        "timeout_sec": limit,
        "env": text_table,
        "user": optional(user),
        **_network,
        "environment_mode": optional(one_of("shared", "separate")),
        "environment": optional(_environment),
        "collect": list_of(_collect),
    },
    extensions={
        "type": one_of("test-script", "llm-judge"),
        "service": rules.service,
        "reward_range": optional(rules.reward_range),
        "judge": _judge,
        "memory": any_table,
        "hardening": any_table,
        "pytest_plugins": _texts,
    },
    prepare=rules.rename_sandbox_mode,
    finish=rules.finish_verifier,
)
_solution = table(
    SolutionTable,
    {"env": text_table},
    extensions={"timeout_sec": optional(limit)},
    prepare=rules.inline_solution_env,
)
_artifact_table = table(
    ArtifactEntry,
    {
        "source": rules.artifact_source,
        "destination": optional(rules.artifact_destination),
        "exclude": _texts,
        "service": optional(rules.service),
    },
    required=("source",),
    finish=rules.finish_artifact,
)
_artifacts = list_of(rules.artifact(_artifact_table))
_step = table(
    StepTable,
    {
        "name": rules.step_name,
        "agent": _agent,
        "verifier": _verifier,
        "min_reward": optional(rules.min_reward),
        "healthcheck": optional(_health),
        "artifacts": _artifacts,
    },
    required=("name",),
)
read_config = table(
    Config,
    {
        "schema_version": rules.schema_version,
        "task": optional(_package),
        "metadata": any_table,
        "verifier": _verifier,
        "agent": _agent,
        "environment": _environment,
        "solution": _solution,
        "source": optional(text),
        "multi_step_reward_strategy": optional(one_of("mean", "final")),
        "steps": optional(list_of(_step)),
        "artifacts": _artifacts,
    },
    extensions={"reward": any_table},
    prepare=rules.prepare_root,
    finish=rules.finish_root,
)
"""`read_config(data, (), report) -> Config`; problems are in the report."""
