"""Contested scores: two readings of one state paid differently, and one of them counts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal

__all__ = ["CHOICES", "Choice", "contested_scores", "counted", "counted_rows", "scores_of_steps"]

Choice = Literal["clean", "as-left", "unscored"]
CHOICES: Final[tuple[Choice, ...]] = ("clean", "as-left", "unscored")


def contested_scores(result: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return what each choice scores, where no evidence settled it. `result`: `result.json`, or a row of the index."""
    if "contested" in result and "verification" not in result:
        found = result["contested"]
        return dict(found) if found else None
    verification = result.get("verification") or {}
    if not verification.get("contested") or verification.get("settled_by") or not verification.get("scores"):
        return None
    return {**verification["scores"], "settled": bool(result.get("settlement"))}


def counted(result: Mapping[str, Any], choice: Choice) -> Mapping[str, Any]:
    """The result as it counts under a choice. A person's judgement on the rollout stands above it."""
    scores = contested_scores(result)
    if scores is None or scores["settled"]:
        return result
    if choice == "unscored":
        info = {"kind": "verifier", "code": "contested", "retryable": False}
        said = "the score is contested, and was left out"
        return {**result, "rewards": None, "verifier_error": said, "verifier_error_info": info}
    error = None if scores[choice] is not None else "the clean reading has no reward"
    return {**result, "rewards": scores[choice], "verifier_error": error}


def counted_rows(rows: Iterable[dict[str, Any]], choice: Choice | None) -> Iterable[dict[str, Any]]:
    """Rows of the index as they count under a choice; as the results say where none is made."""
    return rows if choice is None else [dict(counted(row, choice)) for row in rows]


def scores_of_steps(steps: Mapping[str, Mapping[str, Any]], combine: Any, rewards: Mapping[str, Any]) -> dict[str, Any]:
    """The verification of a task with steps: contested where a step's is, its scores combined as the task says."""
    contested = [v for v in steps.values() if v.get("contested") and not v.get("settled_by")]
    whole: dict[str, Any] = {"policy": next((v.get("policy") for v in steps.values()), None), "steps": dict(steps)}
    whole |= {"contested": bool(contested), "settled_by": None}
    if contested:
        whole["scores"] = {
            choice: combine([(v.get("scores") or {}).get(choice, rewards[name]) for name, v in steps.items()])
            for choice in ("as-left", "clean")
        }
    return whole
