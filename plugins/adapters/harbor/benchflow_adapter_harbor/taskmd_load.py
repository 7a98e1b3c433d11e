"""BenchFlow's single-document task as a native task."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchflow_adapter_harbor import boxes
from benchflow_adapter_harbor.config import EnvironmentTable, TaskConfig, read_config
from benchflow_adapter_harbor.files import existing_file, problem, read_text
from benchflow_adapter_harbor.frontmatter import MarkdownDocument, split_document
from benchflow_adapter_harbor.harbor_load import read_instruction
from benchflow_adapter_harbor.options import TaskOptions, plain, read_options
from benchflow_adapter_harbor.phases import Phases, find_solution, shared_fields
from benchflow_adapter_harbor.prompts import Prompts, read_prompts
from benchflow_adapter_harbor.report import Report
from benchflow_adapter_harbor.rewards import BenchFlowDialect
from benchflow_adapter_harbor.scenes import read_drive
from benchflow_adapter_harbor.shorthand import expand
from benchflow_adapter_harbor.verifier_md import Strategy, read_strategy
from benchflow_core.contracts.tasks import Task, TaskEnvironment, VerifierSettings

_DOCUMENT_KEYS = ("agents", "scenes", "user", "benchflow")
_LENIENT = "BENCHFLOW_REWARD_LENIENT"


def load_taskmd(path: Path) -> Task:
    """Raises `TaskError` with file and line."""
    file = path / "task.md"
    document = split_document(read_text(file, path), file)
    report = Report(file, document.line_of, strict=True)
    config, block, prompts, drive = _read(document, path, report)
    options = read_options(config.metadata, report, inline=block)
    report.raise_first()
    environment = boxes.box(config.environment, path / "environment", path, allow_substitute=options.allow_substitute)
    phases, strategy = _phases(config, options, path, environment, block)
    solution = path / phases.solution_name
    _say_oddities(path, block, config, environment, report)
    return Task(
        **shared_fields(config, path),
        format="task.md",
        instruction=prompts.base,
        dialect=_dialect(config, strategy),
        environment=environment,
        verifier=_verifier(phases.verifier(), strategy, path),
        solution=find_solution(config, environment, solution, phases.solution_target, path),
        steps=tuple(phases.step(step, read_instruction) for step in config.steps or ()),
        locked_paths=("/oracle", "/solution", "/tests", "/verifier"),
        drive=drive,
        metadata=_metadata(config, block),
        notices=tuple(report.notices) + (strategy.notices if strategy else ()),
    )


def _read(
    document: MarkdownDocument, path: Path, report: Report
) -> tuple[TaskConfig, Mapping[str, Any], Prompts, dict[str, Any] | None]:
    """The config, the `benchflow` block, the prompts and the drive; problems with any of them are raised together."""
    data = expand(document.data, report)
    block = data.get("benchflow") or {}
    if not isinstance(block, Mapping):
        report.problem(("benchflow",), "benchflow must be a table")
        block = {}
    config: TaskConfig = read_config({k: v for k, v in data.items() if k not in _DOCUMENT_KEYS}, (), report)
    prompts = read_prompts(document, path)
    drive = read_drive(data, block, prompts, report)
    report.raise_first()
    return replace(config, environment=_limits(config.environment)), block, prompts, drive


def _phases(
    config: TaskConfig, options: TaskOptions, path: Path, environment: TaskEnvironment, block: Mapping[str, Any]
) -> tuple[Phases, Strategy | None]:
    """Native folders have their own places in the box, Harbor's keep Harbor's."""
    tests, solution = _folder(path, block, "verifier", "tests"), _folder(path, block, "oracle", "solution")
    strategy = read_strategy(tests, path)
    phases = Phases(
        config,
        options,
        path,
        environment,
        tests,
        tests_target="/tests" if tests.name == "tests" else "/verifier",
        solution_target="/solution" if solution.name == "solution" else "/oracle",
        solution_name=os.path.relpath(solution, path),
        script_known=strategy is not None,
    )
    return phases, strategy


def _limits(environment: EnvironmentTable) -> EnvironmentTable:
    """BenchFlow's defaults, where Harbor has no limit."""
    return replace(
        environment,
        cpus=1 if environment.cpus is None else environment.cpus,
        memory_mb=2048 if environment.memory_mb is None else environment.memory_mb,
        storage_mb=10240 if environment.storage_mb is None else environment.storage_mb,
    )


def _folder(root: Path, block: Mapping[str, Any], native: str, legacy: str) -> Path:
    """The one the document names, else the native one, else Harbor's."""
    named = block.get(native)
    if isinstance(named, Mapping) and isinstance(named.get("path"), str):
        return root.joinpath(named["path"])
    return root / native if (root / native).is_dir() else root / legacy


def _verifier(settings: VerifierSettings, strategy: Strategy | None, root: Path) -> VerifierSettings:
    if settings.tests_target == "/verifier":
        settings = replace(settings, tests_links=("/tests",))
    if strategy is None:
        return settings
    if strategy.script is not None:
        script = settings.tests[0] / strategy.script
        if existing_file(script, root) is None:
            raise problem(script, "does not exist, but verifier.md runs it", code="missing-tests")
    return replace(
        settings,
        method=strategy.method,
        script=strategy.script or settings.script,
        params={**settings.params, **strategy.params},
    )


def _dialect(config: TaskConfig, strategy: Strategy | None) -> BenchFlowDialect:
    return BenchFlowDialect(
        last_step=config.multi_step_reward_strategy == "final",
        reward_range=config.verifier.reward_range or (0.0, 1.0),
        policy=tuple((strategy.policy if strategy else {}).items()),
        lenient=os.environ.get(_LENIENT, "").strip().lower() in ("1", "true", "yes", "on"),
    )


def _metadata(config: TaskConfig, block: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = plain(config.metadata)
    if config.task and config.task.authors:
        found.setdefault("authors", [{"name": a.name, "email": a.email} for a in config.task.authors])
    if block:
        found["benchflow"] = {**plain(block), **found.get("benchflow", {})}
    for key in ("source", "reward"):
        if value := getattr(config, key):
            found.setdefault(key, plain(value))
    return found


def _say_oddities(
    path: Path, block: Mapping[str, Any], config: TaskConfig, environment: TaskEnvironment, report: Report
) -> None:
    boxes.unused_keys(config.environment, report)
    boxes.missing_image(environment, path / "environment", report)
    if (path / "task.toml").is_file():
        report.notices.append(f"{path / 'task.toml'}: not used: task.md is there too")
    for native, legacy in (("verifier", "tests"), ("oracle", "solution")):
        if (path / native).is_dir() and (path / legacy).is_dir():
            report.notices.append(f"{path / legacy}: not used: {native}/ is there too")
    for key in ("agent_policy", "runtime_policy"):
        if key in block:
            report.notice(("benchflow", key), f"benchflow.{key} is not used")
    hook = path / "environment" / "benchflow-pre-compose.sh"
    if hook.is_file():
        report.notices.append(f"{hook}: never run: a task's code does not run on the host")
