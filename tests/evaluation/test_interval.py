"""The interval of a score, against what scipy 1.16 and statsmodels 0.14 give for the same data."""

from __future__ import annotations

from random import Random

import pytest

from benchflow_core.evaluation import interval as st

CLUSTERS = [[1, 0, 1], [0, 0], [1, 1, 1, 1], [0, 1, 0], [1]]


def test_wilson_is_statsmodels():
    assert st.wilson(7, 10) == pytest.approx((0.39677814746, 0.89220873259))
    assert st.wilson(0, 10) == pytest.approx((0.0, 0.27753279986))
    assert st.wilson(10, 10) == pytest.approx((0.72246720014, 1.0))
    assert st.wilson(0, 0) == (0.0, 1.0)


def test_the_clustered_error_is_that_of_statsmodels_ols_with_groups():
    assert st.clustered_error(CLUSTERS) == pytest.approx(0.1878173994)


def test_with_one_trial_per_task_it_is_the_ordinary_error():
    values = [1.0, 0.0, 0.0, 1.0, 1.0]
    mean = sum(values) / 5
    ordinary = (sum((v - mean) ** 2 for v in values) / 4 / 5) ** 0.5
    assert st.clustered_error([[v] for v in values]) == pytest.approx(ordinary)
    assert st.clustered_error([[1.0, 0.0]]) is None, "one task says nothing about others"


def test_trials_that_always_agree_are_worth_no_more_than_one_each():
    """Ten trials of each of six tasks that know only one answer: the interval is that of six rollouts, not of sixty."""
    sure = [[1.0] * 10] * 3 + [[0.0] * 10] * 3
    assert st.effective_interval(sure) == pytest.approx(st.wilson(3, 6))
    even = [[1.0, 0.0], [1.0, 0.0], [1.0, 0.0], [1.0, 1.0]]  # more alike than chance allows: worth no more than all
    assert st.effective_interval(even) == pytest.approx(st.wilson(5, 8))
    chance = Random(1)
    loose = [[float(chance.random() < 0.5) for _ in range(10)] for _ in range(60)]
    low, high = st.effective_interval(loose)
    plain_low, plain_high = st.wilson(sum(map(sum, loose)), 600)
    assert low <= plain_low and high >= plain_high, "never narrower than independent rollouts would allow"
    assert high - low < 1.3 * (plain_high - plain_low)
