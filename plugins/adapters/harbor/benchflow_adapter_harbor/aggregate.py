"""BenchFlow's reward objects: which keys may be there, and how metrics become one score."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from benchflow_core.contracts.tasks import Rewards

_NOT_METRICS = frozenset(
    {
        *("aggregate", "artifacts", "debug", "details", "details_path", "errors", "evidence", "items", "metadata"),
        *("participants", "raw", "reason", "reasons", "regressions", "winner"),
    }
)
_SPACES = ("output", "action", "reasoning", "memory", "latent")
_GRANULARITIES = ("terminal", "step")
_ALIASES = ("score", "rewards")
_PASS = 0.5
_THRESHOLD = 0.7

Range = tuple[float, float]


class RewardProblem(Exception):
    """What is wrong with a reward object."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.message = message
        self.code = code


def reward_map(data: Mapping[str, Any], allowed: Range, policy: Mapping[str, Any], *, lenient: bool) -> Rewards:
    """The numbers of a reward object: the score, and every metric beside it."""
    if lenient:
        data = _lenient(data, allowed)
    numbers: Rewards = {}
    for key, value in data.items():
        if key == "metrics":
            numbers.update(_metrics(value, allowed))
        elif key in _NOT_METRICS or key in ("rubric", "space", "granularity"):
            _check_structure(key, value)
        else:
            numbers[key] = _number(key, value, allowed)
    if "reward" in data:
        numbers["reward"] = data["reward"]
        return numbers
    declared = data.get("aggregate") if isinstance(data.get("aggregate"), Mapping) else {}
    if not (declared or policy):
        raise RewardProblem("has no 'reward', and nothing says how to make one of its metrics", "no-score")
    source = _metrics(data["metrics"], allowed) if isinstance(data.get("metrics"), Mapping) else dict(numbers)
    return {**numbers, "reward": _aggregate(source, policy, declared or {}, allowed)}


def _is_number(value: Any, allowed: Range) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return allowed[0] <= value <= allowed[1]  # not-a-number compares false


def _number(key: str, value: Any, allowed: Range) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise RewardProblem(f"has a value for {key!r} that is not a number", "not-a-number")
    if not _is_number(value, allowed):
        low, high = allowed
        raise RewardProblem(f"has a value for {key!r} that is not between {low:g} and {high:g}", "out-of-range")
    return value


def _metrics(value: Any, allowed: Range) -> Rewards:
    if not isinstance(value, Mapping):
        raise RewardProblem("has 'metrics' that are not an object", "not-an-object")
    return {str(key): _number(f"metrics.{key}", metric, allowed) for key, metric in value.items()}


def _check_structure(key: str, value: Any) -> None:
    if key == "rubric":
        scored = isinstance(value, list) and all(
            isinstance(i, Mapping) and _is_number(i.get("score"), (0, 1)) for i in value
        )
        if not scored:
            raise RewardProblem("has a 'rubric' that is not a list of items with a score from 0 to 1", "bad-structure")
    elif key == "space" and value not in _SPACES:
        raise RewardProblem(f"has a 'space' that is none of {', '.join(_SPACES)}", "bad-structure")
    elif key == "granularity" and value not in _GRANULARITIES:
        raise RewardProblem(f"has a 'granularity' that is none of {', '.join(_GRANULARITIES)}", "bad-structure")
    elif key == "aggregate":
        _check_aggregate(value)


def _check_aggregate(value: Any) -> None:
    if not isinstance(value, Mapping) or not isinstance(value.get("method"), str) or not value["method"]:
        raise RewardProblem("has an 'aggregate' without a method", "bad-structure")
    weights = value.get("weights")
    if weights is not None and not (isinstance(weights, Mapping) and all(map(_is_finite, weights.values()))):
        raise RewardProblem("has 'aggregate' weights that are not numbers", "bad-structure")
    if value.get("primary") is not None and not isinstance(value["primary"], str):
        raise RewardProblem("has an 'aggregate' whose primary is not a name", "bad-structure")


def _is_finite(value: Any) -> bool:
    try:
        return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:
        return False


def _aggregate(metrics: Rewards, policy: Mapping[str, Any], declared: Mapping[str, Any], allowed: Range) -> float:
    if not metrics:
        raise RewardProblem("has no metrics to make a score of", "no-score")
    if (policy.get("field") or declared.get("primary") or "reward") != "reward":
        raise RewardProblem("has an aggregate for another field than 'reward'", "bad-structure")
    method = policy.get("method") or declared.get("method") or policy.get("fallback")
    if not isinstance(method, str):
        raise RewardProblem("has no aggregate method", "bad-structure")
    _check_criteria(metrics, policy.get("criteria", declared.get("criteria")))
    weights = policy.get("weights") if policy.get("weights") is not None else declared.get("weights")
    threshold = policy.get("threshold") if policy.get("threshold") is not None else declared.get("threshold")
    score = _score(metrics, method.replace("-", "_"), weights, threshold)
    if not _is_number(score, allowed):
        raise RewardProblem(f"aggregates to {score:g}, out of range", "out-of-range")
    return score


def _check_criteria(metrics: Rewards, criteria: Any) -> None:
    if criteria is None:
        return
    if not isinstance(criteria, list | tuple) or not all(isinstance(name, str) and name for name in criteria):
        raise RewardProblem("has aggregate criteria that are not a list of names", "bad-structure")
    if set(metrics) != set(criteria):
        off = ", ".join(sorted(set(metrics) ^ set(criteria)))
        raise RewardProblem(f"has metrics that are not exactly the declared criteria: {off}", "bad-structure")


def _score(metrics: Rewards, method: str, weights: Any, threshold: Any) -> float:
    values = list(metrics.values())
    if method == "mean":
        return sum(values) / len(values)
    if method in ("all_pass", "any_pass"):
        passed = [value >= _PASS for value in values]
        return float(all(passed) if method == "all_pass" else any(passed))
    if method not in ("weighted_mean", "weighted_sum", "threshold"):
        raise RewardProblem(f"has an aggregate method that is not known: {method}", "bad-structure")
    if method == "weighted_sum" and weights is None:
        raise RewardProblem("has the aggregate method weighted_sum without weights", "bad-structure")
    known = _weights(metrics, weights)
    total = sum(metrics[name] * known[name] for name in metrics)
    if method == "weighted_sum":
        return total
    if sum(known.values()) <= 0:
        raise RewardProblem("has aggregate weights that add up to nothing", "bad-structure")
    mean = total / sum(known.values())
    if method == "weighted_mean":
        return mean
    least = _THRESHOLD if threshold is None else threshold
    if not _is_number(least, (0, 1)):
        raise RewardProblem("has an aggregate threshold that is not between 0 and 1", "bad-structure")
    return float(mean >= least)


def _weights(metrics: Rewards, weights: Any) -> dict[str, float]:
    if weights is None:
        return dict.fromkeys(metrics, 1.0)
    good = isinstance(weights, Mapping) and all(_is_finite(w) and w >= 0 for w in weights.values())
    if not good or set(weights) != set(metrics):
        raise RewardProblem("has aggregate weights that do not name every metric with a number from 0", "bad-structure")
    return {name: float(weights[name]) for name in metrics}


def _lenient(data: Mapping[str, Any], allowed: Range) -> dict[str, Any]:
    """What is not understood is dropped, and `score` or `rewards` may stand for `reward`."""
    kept: dict[str, Any] = {}
    for key, value in data.items():
        if key == "metrics":
            if isinstance(value, Mapping):
                kept[key] = {name: metric for name, metric in value.items() if _is_number(metric, allowed)}
        elif key in _NOT_METRICS or key in ("rubric", "space", "granularity"):
            try:
                _check_structure(key, value)
            except RewardProblem:
                continue
            kept[key] = value
        elif _is_number(value, allowed):
            kept[key] = value
    if "reward" not in kept:
        alias = next((name for name in _ALIASES if name in kept), None)
        if alias is not None:
            kept["reward"] = kept.pop(alias)
    return kept
