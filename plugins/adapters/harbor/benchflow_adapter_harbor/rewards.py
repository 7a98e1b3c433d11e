"""The two reward dialects: how a format turns the verifier's output into numbers."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

from benchflow_adapter_harbor.aggregate import RewardProblem, reward_map
from benchflow_core.contracts.quick import dataclass
from benchflow_core.contracts.tasks import RewardFiles, Rewards
from benchflow_core.errors import RewardInvalid, RewardMissing

JSON, TEXT = "reward.json", "reward.txt"


@dataclass
class HarborDialect:
    """Harbor's: `reward.json` alone if it is there, else `reward.txt`; any finite numbers, the exit code is ignored."""

    last_step: bool = False
    name: str = "harbor"
    wants: tuple[str, ...] = (JSON, TEXT)

    def parse(self, found: RewardFiles) -> Rewards:
        if _present(found, JSON):
            return {key: _harbor_number(key, value, found) for key, value in _object(found).items()}
        if _present(found, TEXT):
            return {"reward": _text_number(found)}
        raise _missing(found)

    def combine(self, steps: Sequence[Rewards | None]) -> Rewards:
        return combine_steps(steps, last_step=self.last_step)


@dataclass
class BenchFlowDialect:
    """BenchFlow's: a score named `reward` within a range, `reward.txt` must agree, known extras are allowed."""

    last_step: bool = False
    reward_range: tuple[float, float] = (0.0, 1.0)
    policy: tuple[tuple[str, Any], ...] = ()
    """The verifier document's aggregate policy."""
    lenient: bool = False
    name: str = "benchflow"
    wants: tuple[str, ...] = (JSON, TEXT)

    def parse(self, found: RewardFiles) -> Rewards:
        if not _present(found, JSON):
            if _present(found, TEXT):
                return {"reward": self._text(found)}
            raise _missing(found)
        try:
            rewards = reward_map(_object(found), self.reward_range, dict(self.policy), lenient=self.lenient)
        except RewardProblem as error:
            raise _invalid(found, JSON, error.message, error.code) from error
        if _present(found, TEXT):
            written = self._text(found)
            if not math.isclose(rewards["reward"], written, abs_tol=1e-9, rel_tol=1e-9):
                what = f"gives {rewards['reward']:g} where {TEXT} gives {written:g}"
                raise _invalid(found, JSON, what, "disagree")
        return rewards

    def combine(self, steps: Sequence[Rewards | None]) -> Rewards:
        return combine_steps(steps, last_step=self.last_step)

    def _text(self, found: RewardFiles) -> float:
        value, (low, high) = _text_number(found), self.reward_range
        if not low <= value <= high:
            raise _invalid(found, TEXT, f"must be between {low:g} and {high:g}", "out-of-range")
        return value


def combine_steps(steps: Sequence[Rewards | None], *, last_step: bool) -> Rewards:
    """The last executed step's rewards, or the mean per name over the steps that have any; a missing name counts 0."""
    if last_step:
        return dict(steps[-1] or {}) if steps else {}
    scored = [rewards for rewards in steps if rewards is not None]
    names = dict.fromkeys(name for rewards in scored for name in rewards)
    return {name: sum(rewards.get(name, 0.0) for rewards in scored) / len(scored) for name in names}


def _present(found: RewardFiles, name: str) -> bool:
    """A file that is there but cannot be read is refused, never passed over for the other."""
    if name in found.unreadable:
        raise _invalid(found, name, f"cannot be read: {found.unreadable[name].rstrip('.')}", "unreadable")
    return name in found.files


def _object(found: RewardFiles) -> dict[str, Any]:
    data = found.files[JSON]
    if not data:
        raise _invalid(found, JSON, "is empty", "empty")
    try:
        value = json.loads(data.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise _invalid(found, JSON, "is not valid JSON", "unparsable") from error
    if not isinstance(value, dict):
        raise _invalid(found, JSON, "must hold an object of numbers", "not-an-object")
    return value


def _harbor_number(key: str, value: Any, found: RewardFiles) -> float:
    if not isinstance(value, int | float):
        raise _invalid(found, JSON, f"has a value for {key!r} that is not a number: {_short(value)}", "not-a-number")
    try:
        finite = math.isfinite(value)
    except OverflowError:
        finite = False
    if not finite:
        raise _invalid(found, JSON, f"has a value for {key!r} that is not finite", "not-finite")
    return float(value) if isinstance(value, bool) else value


def _text_number(found: RewardFiles) -> float:
    data = found.files[TEXT]
    if not data:
        raise _invalid(found, TEXT, "is empty", "empty")
    try:
        value = float(data.decode("utf-8"))
    except ValueError as error:
        raise _invalid(found, TEXT, "must hold one number", "unparsable") from error
    if not math.isfinite(value):
        raise _invalid(found, TEXT, "must hold a finite number", "not-finite")
    return value


def _missing(found: RewardFiles) -> RewardMissing:
    return RewardMissing(
        f"the verifier (exit code {found.exit_code}) wrote neither {JSON} nor {TEXT}.",
        remedy="The test script must write its reward to /logs/verifier/reward.txt.",
        details={"code": "missing", "exit_code": found.exit_code},
    )


def _invalid(found: RewardFiles, name: str, what: str, code: str) -> RewardInvalid:
    content = _short(found.files.get(name, b"").decode("utf-8", "replace"))
    shown = f" ({content})" if code not in ("empty", "unreadable") else ""
    details = {"code": code, "file": name, "content": content, "exit_code": found.exit_code}
    return RewardInvalid(f"{name} {what}{shown}.", details=details)


def _short(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= 80 else shown[:77] + "…"
