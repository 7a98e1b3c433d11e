"""The rollouts of a skill's evaluation as traces for GEPA, which evolves a text by what came of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from benchflow_core.contracts.results import ResultsReader
from benchflow_core.evaluation.lift import MODES
from benchflow_core.results.files import read_json, read_jsonl, write_bytes, write_json
from benchflow_core.task.skillset import find_skills

__all__ = ["export_gepa"]

_FOLDER: Final = "gepa"
_SIDES: Final = dict(zip(MODES, ("without", "with"), strict=True))


def export_gepa(reader: ResultsReader, job_dir: Path, skills: Path | None) -> Path:
    """`skill.md`, a file per rollout in `traces/`, `summary.json`: all of a finished job, nothing is run."""
    folder = job_dir / _FOLDER
    texts = [(found / "SKILL.md").read_text("utf-8", "replace") for found in find_skills(skills)] if skills else []
    write_bytes(folder / "skill.md", "\n\n".join(texts).encode())
    for rollout in reader.rollouts(job_dir):
        result = reader.rollout(rollout).result
        side = _SIDES.get(result.get("skill_mode") or "", "other")
        name = f"{result['task_name']}-{result['agent']}-{side}"
        if result.get("trial", 1) > 1:
            name += f"-{result['trial']}"
        plain = re.sub(r"[^\w.-]+", "_", name)
        write_json(folder / "traces" / f"{plain}.json", _trace(rollout, result, side))
    write_json(folder / "summary.json", read_json(job_dir / "summary.json"))
    return folder


def _trace(rollout: Path, result: Mapping[str, Any], side: str) -> dict[str, Any]:
    file = rollout / "trajectory" / "acp_trajectory.jsonl"
    return {
        "case": result["task_name"],
        "agent": result["agent"],
        "model": result.get("model"),
        "skill": side,
        "score": (result.get("rewards") or {}).get("reward"),
        "feedback": [
            f"{test['status']}: {test['name']}" + (f" ({test['message']})" if test.get("message") else "")
            for test in result.get("tests") or ()
        ],
        "trajectory": list(read_jsonl(file)) if file.is_file() else [],
    }
