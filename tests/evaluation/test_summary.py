"""The table of design §6: what counts as what, and what a score may say."""

from __future__ import annotations

import pytest

from benchflow_core.evaluation.stored import results_reader
from benchflow_core.evaluation.summary import summarize
from benchflow_core.rollout.result import outcome_of
from benchflow_core.settings.models import RetryConfig


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
    assert total.score_excl_errors == total.score != total.bounds[0]
    assert total.error_categories == {"infrastructure:x": 1, "verifier:y": 1}


def test_nothing_scored_is_no_score():
    total = summarize("job", [result(None, error="x")], 1, 1.0, None)
    assert total.mean_reward is None and total.coverage == 0.0 and total.bounds == (0.0, 1.0)


def test_waits_grow_up_to_their_limit():
    retry = RetryConfig(max_retries=5, wait_multiplier=2.0, min_wait_sec=1.0, max_wait_sec=3.0)
    assert [retry.wait(n) for n in (1, 2, 3, 4)] == [1.0, 2.0, 3.0, 3.0]


def rollout(task, reward, **more):
    given = result(None if reward is None else {"reward": reward}, error="lost" if reward is None else None)
    return {**given, "task_name": task, **more}


def test_a_score_carries_its_error_its_interval_and_why_rollouts_are_missing():
    rows = [rollout(f"t{n}", float(n < 6)) for n in range(10)] + [rollout("x", None)]
    total = summarize("job", rows, 13, 1.0, None)
    data = total.to_json({})
    assert data["score_error"] == pytest.approx((0.6 * 0.4 / 9) ** 0.5)
    assert data["score_interval"] == pytest.approx((0.3127, 0.8318), abs=1e-4)
    assert data["unscored_by_kind"] == {"infrastructure": 1, "not-run": 2}
    assert data["unscored"] == 3 and data["coverage"] == pytest.approx(10 / 13)


def test_trials_give_pass_at_k_and_name_flaky_tasks():
    rows = (
        [rollout("sure", 1.0)] * 4 + [rollout("never", 0.0)] * 4 + [rollout("maybe", r) for r in (1.0, 0.0, 0.0, 0.0)]
    )
    data = summarize("job", rows, 12, 1.0, None).to_json({})
    assert {k: v["value"] for k, v in data["pass_at_k"].items()} == pytest.approx({"1": 5 / 12, "2": 0.5, "4": 2 / 3})
    assert {k: v["value"] for k, v in data["pass_hat_k"].items()} == pytest.approx(
        {"1": 5 / 12, "2": 1 / 3, "4": 1 / 3}
    )
    assert data["flaky_tasks"] == [{"task": "maybe", "passed": 1, "scored": 4}]


def test_what_is_mixed_into_one_mean_is_scored_apart_and_said():
    rows = [
        rollout("a", 1.0),
        rollout("b", 0.0, image_fidelity="substituted"),
        rollout("c", 1.0, verifier_isolation="shared"),
    ]
    total = summarize("job", rows, 3, 1.0, None)
    assert {k: (v["passed"], v["scored"]) for k, v in total.strata.items()} == {
        "exact image, fresh verifier": (1, 1),
        "exact image, shared verifier": (1, 1),
        "substituted image, fresh verifier": (0, 1),
    }
    said = "\n".join(results_reader().report(total))
    assert "note: image fidelity differs" in said and "note: verifier isolation differs" in said
    assert "note" not in "\n".join(results_reader().report(summarize("job", rows[:1], 1, 1.0, None)))


def test_arms_are_scored_apart_and_their_trials_are_not_taken_for_the_same():
    rows = [rollout("a", 1.0, agent="x"), rollout("a", 0.0, agent="y"), rollout("a", 1.0, agent="y")]
    total = summarize("job", rows, 3, 1.0, None)
    assert {name: (arm.passed, arm.total) for name, arm in total.arms.items()} == {"x": (1, 1), "y": (1, 2)}
    flaky = [{"task": "a", "passed": 1, "scored": 2, "arm": "y"}]
    assert total.statistics == {"pass_at_k": {}, "pass_hat_k": {}, "flaky_tasks": flaky}
    assert (total.score, total.bounds, total.mean_reward, total.score_interval) == (None,) * 4, "no score over arms"
    assert total.lowest_score == 0.5 and total.to_json({})["score"] is None
    assert [failure["arm"] for failure in total.failures] == ["y"]


def test_unknown_usage_is_not_zero():
    known = {"agent_result": {"total_tokens": 10, "cost_usd": None}, "n_skill_invocations": 2}
    data = summarize("job", [rollout("a", 1.0, **known), rollout("b", 1.0)], 2, 1.0, None).to_json({})
    assert data["total_tokens"] == 10 and data["total_tokens_known"] == 1 and "total_cost_usd" not in data
    assert data["total_skill_invocations"] == 2 and data["avg_skill_invocations"] == 1.0


def test_what_nobody_could_score_has_no_score_in_the_files():
    data = summarize("job", [], 18, 1.0, None).to_json({})
    assert (data["score"], data["score_ratio"], data["coverage"]) == (None, None, 0.0)
