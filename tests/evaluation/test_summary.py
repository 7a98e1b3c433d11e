"""The table of design §6: what counts as what, and what a score may say."""

from __future__ import annotations

import pytest

from benchflow_core.evaluation.config import RetryConfig
from benchflow_core.evaluation.summary import summarize
from benchflow_core.rollout.result import outcome_of


def result(rewards=None, error=None, verifier_error=None, kind="infrastructure"):
    info = {"kind": kind, "code": "x", "retryable": False} if error else None
    vinfo = {"kind": "verifier", "code": "y", "retryable": False} if verifier_error else None
    return {
        "task_name": "t",
        "rollout_name": "r",
        "rewards": rewards,
        "error": error,
        "error_info": info,
        "verifier_error": verifier_error,
        "verifier_error_info": vinfo,
        "image_fidelity": "exact",
        "verifier_isolation": "fresh",
    }


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (result({"reward": 1.0}), "passed"),
        (result({"reward": 1}), "passed"),
        (result({"reward": 0.99}), "failed"),
        (result({"reward": 0.0}, error="agent timed out", kind="agent"), "failed"),
        (result({"reward": 1.0}, error="agent timed out", kind="agent"), "passed"),
        (result(None, error="build failed"), "errored"),
        (result(None, verifier_error="no reward"), "verifier_errored"),
        (result({"speed": 3.0}, verifier_error=None), "errored"),
    ],
)
def test_outcomes(given, expected):
    assert outcome_of(given) == expected


def test_unscored_rollouts_cost_coverage_and_never_count_as_zero():
    rows = [
        result({"reward": 1.0}),
        result({"reward": 0.0}),
        result(None, error="no box"),
        result(None, verifier_error="v"),
    ]
    total = summarize("job", rows, 5, 1.0, None)
    assert (total.passed, total.failed, total.errored, total.verifier_errored) == (1, 1, 1, 1)
    assert total.score == 0.5 and total.mean_reward == 0.5
    assert total.coverage == 0.4 and total.unscored == 3
    assert total.bounds == (0.2, 0.8)
    assert total.error_categories == {"infrastructure:x": 1, "verifier:y": 1}


def test_nothing_scored_is_no_score():
    total = summarize("job", [result(None, error="x")], 1, 1.0, None)
    assert total.mean_reward is None and total.coverage == 0.0 and total.bounds == (0.0, 1.0)


def test_waits_grow_up_to_their_limit():
    retry = RetryConfig(max_retries=5, wait_multiplier=2.0, min_wait_sec=1.0, max_wait_sec=3.0)
    assert [retry.wait(n) for n in (1, 2, 3, 4)] == [1.0, 2.0, 3.0, 3.0]
