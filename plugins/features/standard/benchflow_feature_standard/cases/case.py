"""One case as a task."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from benchflow_core.contracts import RewardFiles, Rewards, Task, TaskEnvironment, VerifierSettings
from benchflow_core.errors import RewardInvalid, RewardMissing, TaskError
from benchflow_feature_standard.cases.evals import Case, Defaults

__all__ = ["load_case"]


class CaseRewards:
    """The verifier gives the reward itself; a number in a file is what another verifier would leave."""

    name = "skill-case"
    wants: tuple[str, ...] = ("reward.txt",)

    def parse(self, found: RewardFiles) -> Rewards:
        if "reward.txt" not in found.files:
            raise RewardMissing("reward.txt is missing")
        try:
            value = float(found.files["reward.txt"])
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise RewardInvalid("reward.txt holds no number")
        return {"reward": value}

    def combine(self, steps: Sequence[Rewards | None]) -> Rewards:
        return {"reward": fmean((step or {}).get("reward", 0.0) for step in steps) if steps else 0.0}


def load_case(path: Path) -> Task:
    file = path / "case.json"
    for used in (file, path / "environment", path / "environment/Dockerfile"):
        if not used.resolve().is_relative_to(path.resolve()):
            raise TaskError(f"{used} leads out of the task.", details={"file": str(used)})
    skill, case, defaults = _read(file)
    box = path / "environment"
    own = (box / "Dockerfile").read_text("utf-8", "replace") if (box / "Dockerfile").is_file() else ""
    return Task(
        name=path.resolve().name,
        path=path,
        format="skill-case",
        instruction=case.question,
        dialect=CaseRewards(),
        environment=TaskEnvironment(
            context=box if box.is_dir() else None,
            dockerfile=box / "Dockerfile" if own else None,
            env=case.environment,
            workdir="/app",
            # A case that brings no box of its own asks for nothing but a place to work.
            allow_substitute=own.startswith("FROM python:3.12-slim\nWORKDIR /app\n") and "RUN" not in own,
        ),
        verifier=VerifierSettings(method="skill-case", params=_params(skill, case, defaults)),
        agent_timeout=float(defaults.timeout_sec),
        description=f"Case {case.id} of skill {skill}.",
    )


def _read(file: Path) -> tuple[str, Case, Defaults]:
    try:
        data = json.loads(file.read_text("utf-8"))
        skill, defaults = data.pop("skill"), Defaults.model_validate(data.pop("defaults"))
        return str(skill), Case.model_validate(data), defaults
    except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:
        said = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise TaskError(f"{file} is no case of a skill's evaluation: {said}.", details={"file": str(file)}) from error


def _params(skill: str, case: Case, defaults: Defaults) -> dict[str, Any]:
    """A model is named only where one has to judge."""
    params: dict[str, Any] = {
        "skill": skill,
        "ground_truth": case.ground_truth,
        "expected_behavior": list(case.expected_behavior),
        "expected_skill": case.expected_skill,
        "expected_script": case.expected_script,
    }
    return {**params, "model": defaults.judge_model} if case.expected_behavior else params
