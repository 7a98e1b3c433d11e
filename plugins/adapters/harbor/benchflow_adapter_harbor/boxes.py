"""From config tables to the boxes a task asks for: the agent's, and the verifier's own where it has one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from benchflow_adapter_harbor.config import (
    EnvironmentTable,
    HealthTable,
    McpTable,
    StepTable,
    TaskConfig,
    VerifierTable,
)
from benchflow_adapter_harbor.files import existing_dir, existing_file, inside
from benchflow_adapter_harbor.report import Report
from benchflow_core.contracts.common import McpServer
from benchflow_core.contracts.quick import dataclass
from benchflow_core.contracts.sandboxes import NetworkPolicy, Resources
from benchflow_core.contracts.tasks import Healthcheck, SetupCommand, TaskEnvironment

_MODES: dict[str, Literal["public", "none", "allowlist"]] = {
    "public": "public",
    "no-network": "none",
    "allowlist": "allowlist",
}
DOCKERFILE = "Dockerfile"
COMPOSE = "docker-compose.yaml"


def network(mode: str | None, hosts: tuple[str, ...] | None) -> NetworkPolicy | None:
    """A phase's own policy; `None` where it has none."""
    return None if mode is None else NetworkPolicy(_MODES[mode], hosts or ())


def healthcheck(found: HealthTable | None) -> Healthcheck | None:
    if found is None:
        return None
    return Healthcheck(
        command=found.command,
        interval=found.interval_sec,
        timeout=found.timeout_sec,
        start_period=found.start_period_sec,
        start_interval=found.start_interval_sec,
        retries=found.retries,
    )


def box(
    config: EnvironmentTable, folder: Path, root: Path, *, allow_substitute: bool = False, upload: bool = True
) -> TaskEnvironment:
    """The box described by a table, built from the files in `folder`."""
    context = existing_dir(folder, root)
    dockerfile = existing_file(folder / DOCKERFILE, root)
    compose = existing_file(folder / COMPOSE, root)
    loose = upload and bool(config.docker_image) and context is not None and not (dockerfile or compose)
    tpu = None if config.tpu is None else {"type": config.tpu.type, "topology": config.tpu.topology}
    return TaskEnvironment(
        context=context,
        dockerfile=dockerfile,
        image=config.docker_image or None,
        compose=compose,
        os="windows" if config.os == "windows" else "linux",
        build_timeout=config.build_timeout_sec,
        resources=Resources(
            cpus=config.cpus,
            memory_mb=config.memory_mb,
            storage_mb=config.storage_mb,
            gpus=config.gpus or 0,
            gpu_types=config.gpu_types or (),
            tpu=tpu,
        ),
        network=network(config.network_mode, config.allowed_hosts) or NetworkPolicy(),
        env=config.env,
        workdir=config.workdir,
        healthcheck=healthcheck(config.healthcheck),
        mcp_servers=tuple(mcp_server(server) for server in config.mcp_servers),
        skills_dir=config.skills_dir,
        setup=tuple(
            SetupCommand(s.command, timeout=s.timeout_sec, cwd=s.cwd, env=s.env, user=s.user, service=s.service)
            for s in config.setup_commands
        ),
        upload_context=bool(loose and context and any(context.iterdir())),
        allow_substitute=allow_substitute,
    )


def mcp_server(server: McpTable) -> McpServer:
    transport: Any = server.transport
    return McpServer(
        name=server.name,
        transport=transport,
        url=server.url,
        command=server.command,
        args=server.args,
        env=server.env,
        headers=server.headers,
    )


def unused_keys(config: EnvironmentTable, report: Report) -> None:
    """What the config says and no box can be given: said aloud."""
    for i, server in enumerate(config.mcp_servers):
        for key in ("cwd", "tools", "include_tags", "exclude_tags"):
            if getattr(server, key) is not None:
                report.notice(("environment", "mcp_servers", i, key), f"mcp_servers[{i}].{key} is not used")
    for i, setup in enumerate(config.setup_commands):
        if setup.host_lock is not None:
            report.notice(("environment", "setup_commands", i, "host_lock"), "host_lock is not used")
    if config.bugswarm_image_tag is not None:
        report.notice(("environment", "bugswarm_image_tag"), "bugswarm_image_tag is kept as metadata only")


def missing_image(found: TaskEnvironment, folder: Path, report: Report) -> None:
    if found.image is None and found.dockerfile is None and found.compose is None:
        what = f"{folder.name}/ has neither {DOCKERFILE} nor {COMPOSE}, and no image is named"
        report.notice((), f"{what}: only a sandbox that brings its own file system can run this task")


@dataclass(frozen=True, slots=True)
class SeparateVerifier:
    """The verifier's own box. With `bundled` its image already holds the tests."""

    box: TaskEnvironment
    bundled: bool


def is_separate(config: TaskConfig, step: StepTable | None) -> bool:
    """The step's word, else the task's; a table of its own means separate."""
    for verifier in (step.verifier if step else None, config.verifier):
        if verifier is not None and (mode := _mode(verifier)) is not None:
            return mode == "separate"
    return False


def _mode(verifier: VerifierTable) -> str | None:
    return verifier.environment_mode or ("separate" if verifier.environment is not None else None)


def verifier_box(
    config: TaskConfig, root: Path, step: StepTable | None, tests: Path, step_tests: Path | None
) -> SeparateVerifier:
    """Limits come from the nearest table; the image from the first place that has one.

    Step table's image, step's tests folder, task table's image, the tests folder, and last the agent's own.
    """
    tables = ([step.verifier.environment] if step else []) + [config.verifier.environment]
    settings = next((table for table in tables if table is not None), config.environment)
    places = [(config.verifier.environment, tests)]
    if step and step_tests:
        places.insert(0, (step.verifier.environment, step_tests))
    for table, folder in places:
        inside(folder, root)
        if table is not None and table.docker_image:
            return SeparateVerifier(_with_image(settings, table.docker_image, folder, root), True)
        if any((folder / name).is_file() for name in (DOCKERFILE, COMPOSE)):
            return SeparateVerifier(_with_image(settings, None, folder, root), True)
    image = config.environment.docker_image
    os = settings.os or config.environment.os
    return SeparateVerifier(_with_image(settings, image, root / "environment", root, os=os, upload=True), False)


def _with_image(
    settings: EnvironmentTable,
    image: str | None,
    folder: Path,
    root: Path,
    *,
    os: str | None = None,
    upload: bool = False,
) -> TaskEnvironment:
    return box(replace(settings, docker_image=image, os=os or settings.os), folder, root, upload=upload)
