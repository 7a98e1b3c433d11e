"""What can be said of scores, from the standard library alone. `docs/statistics.md` says how each number is made."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from random import Random
from statistics import NormalDist, fmean, stdev
from typing import Any

from benchflow_core.contracts import EvaluationResult

__all__ = [
    "ALPHA",
    "Interval",
    "bootstrap_interval",
    "detectable_difference",
    "fewest_tasks",
    "ks_up_to",
    "paired_error",
    "paired_interval",
    "paired_test",
    "pass_at_k",
    "pass_hat_k",
    "sign_flip_p",
    "subset_means",
    "trial_statistics",
]

Interval = tuple[float, float]
ALPHA = 0.05
"""What is said to differ is wrong in at most so many of all families of comparisons."""
_SUMS = 50_000
"""Most distinct sums that are followed exactly."""


# --- one score ----------------------------------------------------------------------------------------------


def bootstrap_interval(
    groups: Sequence[Sequence[float]],
    *,
    samples: int = 2000,
    seed: int = 0,
    confidence: float = 0.95,
) -> Interval | None:
    """Percentiles of the mean when whole tasks are drawn again, with replacement. The same seed, the same interval."""
    pairs = [(math.fsum(group), float(len(group))) for group in groups if group]
    if len(pairs) < 2 or samples < 2:
        return None
    draw, count = Random(seed).choices, len(pairs)
    drawn = []
    for _ in range(samples):
        totals, sizes = zip(*draw(pairs, k=count), strict=True)
        drawn.append(sum(totals) / sum(sizes))
    return _percentiles(sorted(drawn), confidence)


def _percentiles(ordered: Sequence[float], confidence: float) -> Interval:
    edge = (1 - confidence) / 2
    return _percentile(ordered, edge), _percentile(ordered, 1 - edge)


def _percentile(ordered: Sequence[float], q: float) -> float:
    place = q * (len(ordered) - 1)
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


# --- several trials of a task -------------------------------------------------------------------------------


def trial_statistics(result: EvaluationResult) -> dict[str, Any]:
    """Return pass@k and pass^k, each with the number of tasks that have k scored trials, and the flaky tasks.

    Trials of different agents are not trials of the same thing: with several arms there is no pass@k over all of them.
    """
    trials = {key: (round(sum(t.passes)), len(t.passes)) for key, t in result.tasks.items() if t.passes}
    most = 0 if result.arms else max((n for _, n in trials.values()), default=0)
    found: dict[str, Any] = {"pass_at_k": {}, "pass_hat_k": {}, "flaky_tasks": _flaky_tasks(result)}
    for name, estimate in (("pass_at_k", pass_at_k), ("pass_hat_k", pass_hat_k)):
        for k in ks_up_to(most):
            if (value := estimate(trials, k)) is not None:
                found[name][str(k)] = {"value": value[0], "tasks": value[1]}
    return found


def _flaky_tasks(result: EvaluationResult) -> list[dict[str, Any]]:
    """Return the tasks that passed in some trials and failed in others, the most undecided first."""
    if result.arms:
        return [{**row, "arm": name} for name, arm in result.arms.items() for row in _flaky_tasks(arm)]
    counts = [(round(sum(t.passes)), len(t.passes), t.name) for t in result.tasks.values()]
    mixed = sorted((abs(c / n - 0.5), name, c, n) for c, n, name in counts if 0 < c < n)
    return [{"task": name, "passed": c, "scored": n} for _, name, c, n in mixed]


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

    Exact as long as the possible sums can be listed, as they can for passes; else by the normal distribution of a sum
    of so many random signs.
    """
    moved = [round(abs(d) * 1e9) for d in differences if abs(d) > 1e-9]
    if not moved:
        return 1.0
    sums: dict[int, float] = {0: 1.0}
    for size in moved:
        if len(sums) > _SUMS:
            return 2 * _tail(abs(math.fsum(differences)) / math.sqrt(math.fsum(d * d for d in differences)))
        then: dict[int, float] = {}
        for value, chance in sums.items():
            for signed in (value - size, value + size):
                then[signed] = then.get(signed, 0.0) + chance / 2
        sums = then
    seen = abs(round(math.fsum(differences) * 1e9))
    slack = len(moved)  # each size was rounded on its own
    return min(1.0, math.fsum(chance for value, chance in sums.items() if abs(value) >= seen - slack))


def _tail(z: float) -> float:
    return 1 - NormalDist().cdf(z)


def paired_error(differences: Sequence[float]) -> tuple[float, float]:
    """Centre and standard error of paired differences of passes, after Bonett and Price.

    One task more that speaks for each side: a few tasks that all agree do not make a certainty.
    """
    n = len(differences) + 2
    centre = math.fsum(differences) / n
    squares = math.fsum(d * d for d in differences) + 2
    return centre, math.sqrt((squares / n - centre**2) / n)


def paired_interval(differences: Sequence[float], confidence: float = 0.95) -> Interval:
    """Bonett and Price's, of passes."""
    centre, error = paired_error(differences)
    half = NormalDist().inv_cdf(0.5 + confidence / 2) * error
    return max(-1.0, centre - half), min(1.0, centre + half)


def paired_test(
    differences: Sequence[float], *, passes: bool, comparisons: int = 1, samples: int = 2000, seed: int = 0
) -> tuple[Interval, float]:
    """An interval for the mean difference and p, which always say the same: p < 5 % where the interval leaves out zero.

    Two methods have to agree that there is a difference: the sign-flip test, which is exact, and the interval, which
    is Bonett and Price's for `passes`, else that of `subset_means`. Both allow for as many `comparisons` as are made at
    once.
    """
    if passes or len(set(differences)) == 1:  # equal values have equal means, which would claim to be certain
        size = 1.0 if passes else abs(differences[0]) or 1.0

        def interval_at(confidence: float) -> Interval:
            low, high = paired_interval([d / size for d in differences], confidence)
            return low * size, high * size
    else:
        drawn = subset_means(differences, samples=samples, seed=seed)

        def interval_at(confidence: float) -> Interval:
            return _percentiles(drawn, confidence)

    p = min(1.0, comparisons * max(sign_flip_p(differences), _level_of_zero(interval_at)))
    low, high = interval_at(1 - ALPHA / comparisons)
    if p >= ALPHA:
        low, high = min(low, 0.0), max(high, 0.0)
    return (low, high), p


def subset_means(values: Sequence[float], *, samples: int = 2000, seed: int = 0) -> list[float]:
    """Means of subsets drawn at random, sorted. Their percentiles are the interval that belongs to the sign-flip test:
    it holds a true mean as often as it says, for few values too, if they scatter evenly around that (Hartigan 1969)."""
    chance = Random(seed).random
    drawn = ([value for value in values if chance() < 0.5] for _ in range(samples))
    return sorted(fmean(subset) for subset in drawn if subset)


def _level_of_zero(interval_at: Callable[[float], Interval]) -> float:
    """The error level at which an interval just reaches zero: what p is for the test that belongs to the interval."""
    inside, outside = 0.0, 1.0
    for _ in range(50):
        level = (inside + outside) / 2
        low, high = interval_at(1 - level)
        inside, outside = (level, outside) if low <= 0 <= high else (inside, level)
    return outside


def detectable_difference(
    differences: Sequence[float], *, passes: bool, comparisons: int = 1, power: float = 0.8
) -> float | None:
    """The smallest true difference that would be shown in 80 of 100 cases, by the spread seen here.

    Never less than the exact test can show with as many tasks against the others as here; None without any spread.
    """
    n, level = len(differences), ALPHA / comparisons
    if n < fewest_tasks(comparisons):
        return None
    error = paired_error(differences)[1] if passes else stdev(differences) / math.sqrt(n)
    against = min(sum(d > 0 for d in differences), sum(d < 0 for d in differences))
    if not error:
        return None
    largest = max(map(abs, differences)) or 1.0
    quantiles = NormalDist().inv_cdf(1 - level / 2) + NormalDist().inv_cdf(power)
    more = fewest_tasks(comparisons, against) - against
    return min(1.0, max(quantiles * error, more * largest / n))


def fewest_tasks(comparisons: int = 1, against: int = 0) -> int:
    """How many tasks have to change in one direction, with some `against` them, before the exact test shows it."""
    few, enough = against, 2 * against + 64
    while few < enough - 1:
        middle = (few + enough) // 2
        few, enough = (few, middle) if _exact_p(middle, against) < ALPHA / comparisons else (middle, enough)
    return enough


def _exact_p(better: int, worse: int) -> float:
    """McNemar's exact p, of more better than worse."""
    thrown, ways, total = better + worse, 1, 0
    for heads in range(worse + 1):
        total += ways
        ways = ways * (thrown - heads) // (heads + 1)
    return 2 * total / (1 << thrown)
