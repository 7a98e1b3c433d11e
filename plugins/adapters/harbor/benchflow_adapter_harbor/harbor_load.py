"""A Harbor task folder as a native task."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Any

from benchflow_adapter_harbor import boxes
from benchflow_adapter_harbor.config import TaskConfig, read_config
from benchflow_adapter_harbor.files import existing_file, problem, read_text
from benchflow_adapter_harbor.options import plain, read_options
from benchflow_adapter_harbor.phases import Phases, find_solution, shared_fields
from benchflow_adapter_harbor.report import Report
from benchflow_adapter_harbor.rewards import BenchFlowDialect, HarborDialect
from benchflow_adapter_harbor.tomlfile import line_in_toml, parse_toml
from benchflow_core.contracts.tasks import Task

_CANARY = re.compile(r"(<!--.*canary.*-->|#.*canary.*)", re.IGNORECASE)
_BENCHFLOW_VERIFIER = ("type", "reward_range", "judge")


def load_harbor(path: Path) -> Task:
    """Raises `TaskError` with file and line."""
    file = path / "task.toml"
    text = read_text(file, path)
    report = Report(file, partial(line_in_toml, text), strict=False)
    config = read_config(parse_toml(text, file), (), report)
    report.raise_first()
    options = read_options(config.metadata, report)
    environment = boxes.box(config.environment, path / "environment", path, allow_substitute=options.allow_substitute)
    report.raise_first()
    _say_oddities(config, path, report)
    boxes.missing_image(environment, path / "environment", report)
    phases = Phases(config, options, path, environment, path / "tests")
    return Task(
        **shared_fields(config, path),
        format="harbor",
        instruction="" if config.steps else read_instruction(path / "instruction.md", path),
        dialect=_dialect(config, report),
        environment=environment,
        verifier=phases.verifier(),
        solution=find_solution(config, environment, path / "solution", "/solution", path),
        steps=tuple(phases.step(step, read_instruction) for step in config.steps or ()),
        metadata=_metadata(config),
        prior_conversation=_prior(config, path),
        notices=tuple(report.notices),
    )


def read_instruction(file: Path, root: Path) -> str:
    if not file.exists():
        raise problem(file, "does not exist", remedy="Write what the agent is to do in it.", code="missing-instruction")
    return strip_canary(read_text(file, root))


def strip_canary(text: str) -> str:
    """Without the marker lines at the top (they keep a benchmark out of training data) and blank ones after them."""
    lines = text.replace("\r\n", "\n").split("\n")
    start = 0
    while start < len(lines) and _CANARY.fullmatch(lines[start].strip()):
        start += 1
    while start < len(lines) and not lines[start].strip():
        start += 1
    return "\n".join(lines[start:])


def _dialect(config: TaskConfig, report: Report) -> Any:
    """Harbor's rules, unless the verifier is described in BenchFlow's words."""
    last_step = config.multi_step_reward_strategy == "final"
    if any(where[:1] == ("verifier",) and where[-1] in _BENCHFLOW_VERIFIER for where in report.extensions):
        report.notice(("verifier",), "the verifier is described in BenchFlow's words: BenchFlow's reward rules apply")
        return BenchFlowDialect(last_step=last_step, reward_range=config.verifier.reward_range or (0.0, 1.0))
    return HarborDialect(last_step=last_step)


def _prior(config: TaskConfig, path: Path) -> Path | None:
    first = path / "steps" / config.steps[0].name if config.steps else path
    return existing_file(first / "trajectory.json", path)


def _metadata(config: TaskConfig) -> dict[str, Any]:
    found: dict[str, Any] = plain(config.metadata)
    if config.task and config.task.authors:
        found.setdefault("authors", [{"name": a.name, "email": a.email} for a in config.task.authors])
    if config.source:
        found.setdefault("source", config.source)
    if config.environment.bugswarm_image_tag:
        found.setdefault("bugswarm_image_tag", config.environment.bugswarm_image_tag)
    return found


def _say_oddities(config: TaskConfig, path: Path, report: Report) -> None:
    boxes.unused_keys(config.environment, report)
    if config.steps and (path / "instruction.md").is_file():
        report.notice(("steps",), "instruction.md is not used: the task has steps, each with an instruction of its own")
    misnamed = path / "environment" / "docker-compose.yml"
    if misnamed.is_file():
        report.notices.append(f"{misnamed}: not used: the name must be {boxes.COMPOSE}")
