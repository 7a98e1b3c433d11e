"""The estimators, against what scipy 1.16 and statsmodels 0.14 give for the same data, and against plain counting."""

from __future__ import annotations

from itertools import combinations, product
from random import Random

import pytest
from benchflow_command_results import statistics as st
from hypothesis import given
from hypothesis import strategies as some

CLUSTERS = [[1, 0, 1], [0, 0], [1, 1, 1, 1], [0, 1, 0], [1]]
MOVED = [0.5, 0.25, -0.25, 0.75, 0.1, -0.3, 0.2, 0.6, -0.05, 0.33]


def test_the_bootstrap_is_scipys():
    low, high = st.bootstrap_interval([[d] for d in MOVED], samples=5000, seed=1)
    assert (low, high) == pytest.approx((0.01, 0.414), abs=0.015)


def test_the_bootstrap_is_seeded_and_draws_whole_tasks():
    one = st.bootstrap_interval(CLUSTERS, samples=500, seed=7)
    assert one == st.bootstrap_interval(CLUSTERS, samples=500, seed=7)
    assert one != st.bootstrap_interval(CLUSTERS, samples=500, seed=8)
    assert st.bootstrap_interval([[1.0, 0.0, 1.0]], samples=500) is None


@given(some.lists(some.integers(0, 1), min_size=1, max_size=8), some.integers(1, 8))
def test_pass_at_k_counts_subsets(outcomes, k):
    """Unbiased: the share of all k-subsets of the trials that hold a pass, or nothing but passes."""
    trials = {"t": (sum(outcomes), len(outcomes))}
    subsets = list(combinations(outcomes, k))
    if not subsets:
        assert st.pass_at_k(trials, k) is None and st.pass_hat_k(trials, k) is None
        return
    assert st.pass_at_k(trials, k) == (pytest.approx(sum(map(any, subsets)) / len(subsets)), 1)
    assert st.pass_hat_k(trials, k) == (pytest.approx(sum(map(all, subsets)) / len(subsets)), 1)


def test_pass_at_k_says_over_how_many_tasks():
    assert st.pass_at_k({"a": (1, 4), "b": (4, 4), "c": (1, 1)}, 2) == (pytest.approx(0.75), 2)
    assert [st.ks_up_to(n) for n in (0, 1, 4, 5)] == [[], [1], [1, 2, 4], [1, 2, 4, 5]]


@pytest.mark.parametrize(("better", "worse", "expected"), [(8, 2, 0.109375), (6, 0, 0.03125), (15, 5, 0.0413894653)])
def test_with_passes_the_test_is_mcnemars_exact_one(better, worse, expected):
    assert st.sign_flip_p([1.0] * better + [-1.0] * worse + [0.0] * 50) == pytest.approx(expected)


@given(some.lists(some.sampled_from([-1.0, -0.5, -0.25, 0.0, 0.1, 0.75]), min_size=1, max_size=9))
def test_the_sign_flip_test_is_exact(moved):
    seen = abs(sum(moved))
    flips = [
        abs(sum(s * d for s, d in zip(signs, moved, strict=True))) for signs in product((1, -1), repeat=len(moved))
    ]
    assert st.sign_flip_p(moved) == pytest.approx(sum(f >= seen - 1e-9 for f in flips) / len(flips))


def test_sums_that_cannot_be_listed_are_as_if_signs_were_drawn():
    chance = Random(2)
    moved = [chance.gauss(0.2, 1.0) for _ in range(40)]
    flips = [abs(sum(d if chance.random() < 0.5 else -d for d in moved)) for _ in range(20_000)]
    assert st.sign_flip_p(moved) == pytest.approx(sum(f >= abs(sum(moved)) for f in flips) / 20_000, abs=0.02)


@pytest.mark.parametrize(("worse", "better", "tasks"), [(0.1, 0.1, 20), (0.05, 0.2, 30), (0.3, 0.1, 100)])
def test_the_paired_interval_holds_what_it_says(worse, better, tasks):
    """Drawn again and again, at least 94 of 100 intervals hold the true difference."""
    chance, held, rounds = Random(5), 0, 1500
    for _ in range(rounds):
        drawn = [chance.random() for _ in range(tasks)]
        low, high = st.paired_interval([1.0 if u < better else -1.0 if u < better + worse else 0.0 for u in drawn])
        held += low <= better - worse <= high
    assert held / rounds > 0.94


@pytest.mark.parametrize("tasks", [7, 12])
def test_the_interval_of_a_reward_holds_what_it_says(tasks):
    chance, held, rounds = Random(6), 0, 300
    for _ in range(rounds):
        (low, high), _ = st.paired_test([chance.gauss(0.3, 1.0) for _ in range(tasks)], passes=False, samples=500)
        held += low <= 0.3 <= high
    assert held / rounds > 0.92


@pytest.mark.parametrize("comparisons", [1, 2, 3, 6])
def test_interval_p_and_detectable_difference_never_contradict_each_other(comparisons):
    """Every outcome of up to 16 tasks: p and the interval agree, and what is not shown is not called large enough."""
    for tasks in range(1, 17):
        for better in range(tasks + 1):
            for worse in range(tasks - better + 1):
                moved = [1.0] * better + [-1.0] * worse + [0.0] * (tasks - better - worse)
                (low, high), p = st.paired_test(moved, passes=True, comparisons=comparisons)
                assert (p < st.ALPHA) == (low > 0 or high < 0), (tasks, better, worse)
                enough = st.detectable_difference(moved, passes=True, comparisons=comparisons)
                assert p < st.ALPHA or enough is None or abs(better - worse) / tasks < enough, (tasks, better, worse)


@given(some.lists(some.floats(-1, 1), min_size=2, max_size=12), some.integers(1, 5))
def test_interval_and_p_of_rewards_never_contradict_each_other(moved, comparisons):
    (low, high), p = st.paired_test(moved, passes=False, comparisons=comparisons, samples=200)
    assert (p < st.ALPHA) == (low > 0 or high < 0)
