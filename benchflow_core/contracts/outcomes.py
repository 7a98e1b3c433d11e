"""What published results count as: the outcome, who ran, the scores of two readings that differ, a plan's rollouts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal

__all__ = [
    "CHOICES",
    "Choice",
    "Outcome",
    "arm_of",
    "contested_scores",
    "counted",
    "outcome_of",
    "planned_arms",
    "planned_items",
    "scores_of_steps",
    "team_of",
]

Outcome = Literal["passed", "failed", "errored", "verifier_errored"]
Choice = Literal["clean", "as-left", "unscored"]
CHOICES: Final[tuple[Choice, ...]] = ("clean", "as-left", "unscored")


def outcome_of(result: Mapping[str, Any]) -> Outcome:
    """Derived, never stored. Only a reward of exactly 1 passes; unscored means one side or the other errored."""
    reward = (result.get("rewards") or {}).get("reward")
    if reward is not None:
        return "passed" if reward == 1 else "failed"
    return "verifier_errored" if result.get("verifier_error") else "errored"


def arm_of(result: Mapping[str, Any]) -> str:
    """Return the arm as the job names it, else who ran: agents and models."""
    if result.get("arm"):
        return str(result["arm"])
    return " ".join(name for name in team_of(result) if name)


def team_of(result: Mapping[str, Any]) -> tuple[str | None, str | None]:
    """Return the agents and the models of all roles, each named once."""
    roles = (result.get("roles") or {}).values() or [result]
    agents, models = (dict.fromkeys(str(r[key]) for r in roles if r.get(key)) for key in ("agent", "model"))
    return ", ".join(agents) or None, ", ".join(models) or None


# --- the plan of a job --------------------------------------------------------------------------------------


def planned_items(plan: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the rollouts that a job set out to run, as its `job.json` names them."""
    items = plan.get("items")
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []


def planned_arms(plan: Mapping[str, Any]) -> dict[str, int]:
    """Return how many rollouts each arm has in a `job.json`, in the order of the matrix."""
    counts = Counter(str(item["arm"]) for item in planned_items(plan) if item.get("arm"))
    arms = plan.get("arms")
    order = [arm for arm in arms if isinstance(arm, str) and arm in counts] if isinstance(arms, list) else []
    return {arm: counts[arm] for arm in dict.fromkeys([*order, *sorted(counts)])}


# --- contested: two readings of one state paid differently, and one of them counts --------------------------


def contested_scores(result: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return what each choice scores, where no evidence settled it. `result`: `result.json`, or a row of an index."""
    if "contested" in result and "verification" not in result:
        found = result["contested"]
        return dict(found) if found else None
    verification = result.get("verification") or {}
    if not verification.get("contested") or verification.get("settled_by") or not verification.get("scores"):
        return None
    return {**verification["scores"], "settled": bool(result.get("settlement"))}


def counted(result: Mapping[str, Any], choice: Choice) -> Mapping[str, Any]:
    """Return the result as it counts under a choice. A person's judgement on the rollout stands above it."""
    scores = contested_scores(result)
    if scores is None or scores["settled"]:
        return result
    if choice == "unscored":
        info = {"kind": "verifier", "code": "contested", "retryable": False}
        said = "the score is contested, and was left out"
        return {**result, "rewards": None, "verifier_error": said, "verifier_error_info": info}
    error = None if scores[choice] is not None else "the clean reading has no reward"
    return {**result, "rewards": scores[choice], "verifier_error": error}


def scores_of_steps(
    steps: Mapping[str, Mapping[str, Any]], combine: Callable[..., Any], rewards: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the verification of a task with steps: contested where a step's is, scores combined as the task says."""
    contested = [v for v in steps.values() if v.get("contested") and not v.get("settled_by")]
    whole: dict[str, Any] = {"policy": next((v.get("policy") for v in steps.values()), None), "steps": dict(steps)}
    whole |= {"contested": bool(contested), "settled_by": None}
    if contested:
        whole["scores"] = {
            choice: combine([(v.get("scores") or {}).get(choice, rewards[name]) for name, v in steps.items()])
            for choice in ("as-left", "clean")
        }
    return whole
