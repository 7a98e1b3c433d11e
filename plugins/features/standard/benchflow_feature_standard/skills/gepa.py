"""The rollouts of a skill's evaluation as traces for GEPA, which evolves a text by what came of it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from benchflow_core.contracts import ResultsReader
from benchflow_feature_standard.files import replace_file
from benchflow_feature_standard.skills.folders import find_skills
from benchflow_feature_standard.skills.lift import MODES

__all__ = ["export_gepa"]

_FOLDER: Final = "gepa"
_SIDES: Final = dict(zip(MODES, ("without", "with"), strict=True))


def export_gepa(reader: ResultsReader, job_dir: Path, skills: Path | None) -> Path:
    """Write `skill.md`, a file per rollout in `traces/`, and `summary.json` of a finished job."""
    folder = job_dir / _FOLDER
    texts = [(found / "SKILL.md").read_text("utf-8", "replace") for found in find_skills(skills)] if skills else []
    replace_file(folder / "skill.md", "\n\n".join(texts).encode())
    for rollout in reader.rollouts(job_dir):
        result = reader.rollout(rollout).result
        side = _SIDES.get(result.get("skill_mode") or "", "other")
        name = f"{result['task_name']}-{result['agent']}-{side}"
        if result.get("trial", 1) > 1:
            name += f"-{result['trial']}"
        plain = re.sub(r"[^\w.-]+", "_", name)
        trace = json.dumps(_trace(rollout, result, side), indent=2, ensure_ascii=False)
        replace_file(folder / "traces" / f"{plain}.json", trace.encode("utf-8", "replace"))
    replace_file(folder / "summary.json", (job_dir / "summary.json").read_bytes())
    return folder


def _trace(rollout: Path, result: Mapping[str, Any], side: str) -> dict[str, Any]:
    file = rollout / "trajectory" / "acp_trajectory.jsonl"
    lines = file.read_text("utf-8").splitlines() if file.is_file() else []
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
        "trajectory": [json.loads(line) for line in lines],
    }
