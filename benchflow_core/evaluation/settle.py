"""`settle`: a person's judgement on a contested rollout, kept beside its result with who, when and why."""

from __future__ import annotations

import getpass
from pathlib import Path
from typing import Any

from benchflow_core.errors import ConfigurationError
from benchflow_core.results.clock import now
from benchflow_core.results.contested import Choice, contested_scores
from benchflow_core.results.files import read_json, write_json
from benchflow_core.results.layout import RolloutDir

__all__ = ["settle_rollout"]

_VERSION = "1.0"


def settle_rollout(folder: Path, choice: Choice, because: str, by: str | None = None) -> dict[str, Any]:
    """Let one of the two scores count, and return the result. Settling again replaces the judgement."""
    path = RolloutDir(folder).result
    try:
        result: dict[str, Any] = read_json(path)
        scores = contested_scores(result)
    except (OSError, ValueError, AttributeError, TypeError) as error:
        raise ConfigurationError(f"{path} cannot be read: {error}.") from error
    if scores is None:
        raise ConfigurationError(
            f"{folder.name} is not contested: there is nothing to settle.",
            remedy=f"What it says of its verification: bench eval show {folder}",
        )
    if not because.strip():
        raise ConfigurationError("--because is empty.", remedy="Say why, for those who read the score.")
    judgement = {"choice": choice, "because": because, "by": by or _user(), "at": now()}
    rewards = scores[choice]
    write_json(folder / "settlement.json", {"schema_version": _VERSION, **judgement, "scores": scores})
    result |= {"rewards": rewards, "settlement": judgement}
    result |= dict.fromkeys(("verifier_error", "verifier_error_category", "verifier_error_info")) if rewards else {}
    write_json(path, result)
    return result


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"
