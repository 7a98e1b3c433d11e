"""What verification did to the agent's state, or could not do: listed with every verdict."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from benchflow_core.quick import dataclass

__all__ = ["Action", "Finding", "as_json"]

Action = Literal["put-back", "set-aside", "disarmed", "kept", "noted"]
"""`put-back`: as in the image. `set-aside`: not in the verifier's box. `disarmed`: there, but without effect on the
verifier. `kept`: left in effect because the task says so. `noted`: nothing was done."""

_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Finding:
    """One of them."""

    code: str
    path: str
    action: Action
    why: str


def as_json(findings: Iterable[Finding]) -> tuple[dict[str, Any], ...]:
    """For results: equal ones once, and of many alike the first few with the number of the rest."""
    groups: dict[tuple[str, str, str], list[str]] = {}
    for finding in dict.fromkeys(findings):
        groups.setdefault((finding.code, finding.action, finding.why), []).append(finding.path)
    rows: list[dict[str, Any]] = []
    for (code, action, why), paths in groups.items():
        rows += [{"code": code, "path": path, "action": action, "why": why} for path in paths[:_SHOWN]]
        if len(paths) > _SHOWN:
            rest = len(paths) - _SHOWN
            rows.append({"code": code, "path": f"and {rest} more", "action": action, "why": why, "count": rest})
    return tuple(rows)
