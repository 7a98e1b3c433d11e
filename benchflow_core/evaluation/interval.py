"""The error and the interval of a score whose rollouts are not independent: see `docs/statistics.md`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from statistics import NormalDist

__all__ = ["clustered_error", "effective_interval", "wilson"]


def clustered_error(groups: Iterable[Sequence[float]]) -> float | None:
    """Return the standard error of the mean over all values, where those of one task are not independent.

    The sandwich estimator with the factor G/(G-1); with one value per task it is the ordinary standard error.
    `None` with fewer than two tasks: nothing can be said about other tasks then.
    """
    clusters = [group for group in groups if group]
    if len(clusters) < 2:
        return None
    n = sum(map(len, clusters))
    mean = sum(map(sum, clusters)) / n
    squares = math.fsum((sum(group) - len(group) * mean) ** 2 for group in clusters)
    return math.sqrt(squares * len(clusters) / (len(clusters) - 1)) / n


def wilson(successes: float, n: float, confidence: float = 0.95) -> tuple[float, float]:
    """Return Wilson's score interval of a proportion; `n` need not be whole."""
    if n <= 0:
        return 0.0, 1.0
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    p = successes / n
    centre = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return max(0.0, centre - half) if p > 0 else 0.0, min(1.0, centre + half) if p < 1 else 1.0


def effective_interval(groups: Iterable[Sequence[float]], confidence: float = 0.95) -> tuple[float, float]:
    """Return Wilson's interval for passes clustered by task: for as many rollouts as they are worth.

    That number lies between the tasks and the rollouts; with one rollout per task it is Wilson's plain interval.
    """
    clusters = [group for group in groups if group]
    n = sum(map(len, clusters))
    if not n:
        return 0.0, 1.0
    p = sum(map(sum, clusters)) / n
    error = clustered_error(clusters)
    worth = p * (1 - p) / error**2 if error else 0.0
    worth = min(float(n), max(worth, float(len(clusters))))
    return wilson(p * worth, worth, confidence)
