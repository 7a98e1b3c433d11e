"""The numbers behind a score, from the standard library alone. `docs/statistics.md` says how each is made."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import NormalDist, fmean

__all__ = [
    "Interval",
    "bootstrap_interval",
    "clustered_error",
    "effective_interval",
    "holm",
    "ks_up_to",
    "mean_interval",
    "paired_error",
    "paired_interval",
    "pass_at_k",
    "pass_hat_k",
    "sign_flip_p",
    "student_quantile",
    "student_tail",
    "wilson",
]

Interval = tuple[float, float]
_LARGE = 200
"""Degrees of freedom from which the normal distribution is as good as Student's."""
_SUMS = 200_000
"""Most distinct sums that are followed exactly."""


# --- one score ----------------------------------------------------------------------------------------------


def clustered_error(groups: Iterable[Sequence[float]]) -> float | None:
    """Standard error of the mean over all values, where those of one task are not independent.

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


def wilson(successes: float, n: float, confidence: float = 0.95) -> Interval:
    """Wilson's score interval of a proportion; `n` need not be whole."""
    if n <= 0:
        return 0.0, 1.0
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    p = successes / n
    centre = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return max(0.0, centre - half) if p > 0 else 0.0, min(1.0, centre + half) if p < 1 else 1.0


def effective_interval(groups: Sequence[Sequence[float]], confidence: float = 0.95) -> Interval:
    """Wilson's interval for passes clustered by task: as if there were only as many rollouts as are worth something.

    The number lies between the tasks and the rollouts; with one rollout per task it is Wilson's plain interval.
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


def mean_interval(groups: Sequence[Sequence[float]], confidence: float = 0.95) -> Interval | None:
    """Student's interval around the mean, with the clustered error and one degree of freedom less than tasks."""
    clusters = [group for group in groups if group]
    error = clustered_error(clusters)
    if error is None:
        return None
    mean = sum(map(sum, clusters)) / sum(map(len, clusters))
    half = student_quantile(0.5 + confidence / 2, len(clusters) - 1) * error
    return mean - half, mean + half


def bootstrap_interval(
    groups: Sequence[Sequence[float]],
    *,
    samples: int = 2000,
    seed: int = 0,
    confidence: float = 0.95,
) -> Interval | None:
    """Percentiles of the mean when whole tasks are drawn again, with replacement. The same seed, the same interval."""
    from random import Random

    pairs = [(math.fsum(group), float(len(group))) for group in groups if group]
    if len(pairs) < 2 or samples < 2:
        return None
    draw, count = Random(seed).choices, len(pairs)
    drawn = []
    for _ in range(samples):
        totals, sizes = zip(*draw(pairs, k=count), strict=True)
        drawn.append(sum(totals) / sum(sizes))
    drawn.sort()
    edge = (1 - confidence) / 2
    return _percentile(drawn, edge), _percentile(drawn, 1 - edge)


def _percentile(ordered: Sequence[float], q: float) -> float:
    place = q * (len(ordered) - 1)
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


# --- several trials of a task -------------------------------------------------------------------------------


def pass_at_k(trials: Mapping[str, tuple[int, int]], k: int) -> tuple[float, int] | None:
    """Chance that at least one of k trials passes, and over how many tasks: those with k scored trials or more.

    `trials` maps a task to (passed, scored). Unbiased: one minus the share of k-subsets without a pass.
    """
    rates = [1 - math.comb(n - c, k) / math.comb(n, k) for c, n in trials.values() if n >= k]
    return (fmean(rates), len(rates)) if rates else None


def pass_hat_k(trials: Mapping[str, tuple[int, int]], k: int) -> tuple[float, int] | None:
    """Chance that all of k trials pass: the share of k-subsets with nothing but passes."""
    rates = [math.comb(c, k) / math.comb(n, k) for c, n in trials.values() if n >= k]
    return (fmean(rates), len(rates)) if rates else None


def ks_up_to(most: int) -> list[int]:
    """1, 2, 4, 8 … and the most there is."""
    found = [1 << n for n in range(most.bit_length()) if 1 << n <= most]
    return found if not found or found[-1] == most else [*found, most]


# --- comparing ----------------------------------------------------------------------------------------------


def sign_flip_p(differences: Sequence[float]) -> float:
    """Two-sided: how often random signs give a sum as far from zero. With ±1 this is McNemar's exact test.

    Exact as long as the possible sums can be listed, as they can for passes; else by Student's t.
    """
    moved = [round(abs(d) * 1e9) for d in differences if abs(d) > 1e-9]
    if not moved:
        return 1.0
    sums: dict[int, float] = {0: 1.0}
    for size in moved:
        if len(sums) > _SUMS:
            return _t_test_p(differences)
        then: dict[int, float] = {}
        for value, chance in sums.items():
            for signed in (value - size, value + size):
                then[signed] = then.get(signed, 0.0) + chance / 2
        sums = then
    seen = abs(round(math.fsum(differences) * 1e9))
    slack = len(moved)  # each size was rounded on its own
    return min(1.0, math.fsum(chance for value, chance in sums.items() if abs(value) >= seen - slack))


def _t_test_p(differences: Sequence[float]) -> float:
    error = clustered_error([[d] for d in differences])
    if not error:
        return 1.0
    return 2 * student_tail(abs(fmean(differences)) / error, len(differences) - 1)


def paired_error(differences: Sequence[float]) -> tuple[float, float]:
    """Centre and standard error of paired differences of passes, after Bonett and Price.

    One task more that speaks for each side: a few tasks that all agree do not make a certainty.
    """
    n = len(differences) + 2
    centre = math.fsum(differences) / n
    squares = math.fsum(d * d for d in differences) + 2
    return centre, math.sqrt((squares / n - centre**2) / n)


def paired_interval(differences: Sequence[float], confidence: float = 0.95) -> Interval:
    centre, error = paired_error(differences)
    half = NormalDist().inv_cdf(0.5 + confidence / 2) * error
    return max(-1.0, centre - half), min(1.0, centre + half)


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjusted for asking several questions at once, in the order given."""
    adjusted = [0.0] * len(p_values)
    worst = 0.0
    for place, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        worst = max(worst, min(1.0, p_values[index] * (len(p_values) - place)))
        adjusted[index] = worst
    return adjusted


# --- Student's t ---------------------------------------------------------------------------------------------


def student_tail(t: float, df: float) -> float:
    """Chance of a value above `t`."""
    if t < 0:
        return 1 - student_tail(-t, df)
    return _incomplete_beta(df / 2, 0.5, df / (df + t * t)) / 2


def student_quantile(q: float, df: float) -> float:
    """The value below which a share `q` lies."""
    if df >= _LARGE:
        z = NormalDist().inv_cdf(q)
        return z + (z**3 + z) / (4 * df) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * df * df)
    if q < 0.5:
        return -student_quantile(1 - q, df)
    low, high = 0.0, 1.0
    while student_tail(high, df) > 1 - q:
        high *= 2
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if student_tail(middle, df) > 1 - q else (low, middle)
    return (low + high) / 2


def _incomplete_beta(a: float, b: float, x: float) -> float:
    """The regularised incomplete beta function, by its continued fraction (Lentz)."""
    if x <= 0 or x >= 1:
        return min(max(x, 0.0), 1.0)
    if x > (a + 1) / (a + b + 2):
        return 1 - _incomplete_beta(b, a, 1 - x)
    tiny = 1e-300
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)) / a
    c, d = 1.0, 1 / ((1 - (a + b) * x / (a + 1)) or tiny)
    result = d
    for m in range(1, 500):
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 / ((1 + term * d) or tiny)
            c = (1 + term / c) or tiny
            result *= c * d
        if abs(c * d - 1) < 1e-15:
            break
    return front * result
