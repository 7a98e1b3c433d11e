"""Comparing: paired by task, and nothing that differs goes unsaid."""

from __future__ import annotations

import json

import pytest
from benchflow_command_results.compare import compare, load_sides
from benchflow_command_results.jobs import job_result, stored_jobs

from benchflow_core.errors import ConfigurationError
from benchflow_core.evaluation.stored import StoredFiles

FILES = StoredFiles()


def tasks(passed: int, of: int) -> dict[str, list[float | None]]:
    return {f"t{n:02}": [float(n < passed)] for n in range(of)}


def only(*jobs, **more):
    (found,) = compare(FILES, load_sides(FILES, [str(job) for job in jobs]), **more)
    return found


def fields(one) -> dict[str, tuple[list[str], list[str]]]:
    return {d.field: (d.base, d.other) for d in one.different}


def test_a_clear_difference(make_job):
    one = only(make_job("a", tasks(5, 30)), make_job("b", tasks(20, 30), model="other"))
    assert (one.better, one.worse, one.tasks) == (15, 0, 30)
    assert one.difference == pytest.approx(0.5)
    assert one.interval[0] < 0.5 < one.interval[1] and one.interval[0] > 0
    assert one.p_value == pytest.approx(2 * 0.5**15)
    assert one.outcome == "better" and "is better than" in one.verdict and "50.0 points" in one.verdict
    assert fields(one) == {"model": (["model"], ["other"])}


def test_a_small_difference_is_not_shown_and_says_what_would_have_been(make_job):
    one = only(make_job("a", tasks(10, 30)), make_job("b", tasks(12, 30), model="other"))
    assert one.outcome == "undecided" and "may be chance" in one.verdict
    assert one.detectable is not None and one.detectable >= 6 / 30 > abs(one.difference)
    assert f"{one.detectable * 100:.1f} points" in one.verdict


def test_few_tasks_cannot_show_anything(make_job):
    one = only(make_job("a", tasks(0, 5)), make_job("b", tasks(5, 5)))
    assert one.outcome == "undecided" and one.detectable is None and "however large" in one.verdict


def test_equal_within_a_margin(make_job):
    a, b = make_job("a", tasks(60, 120)), make_job("b", tasks(60, 120), model="other")
    assert only(a, b).outcome == "undecided"
    assert only(a, b, margin=0.1).outcome == "equivalent"


def test_trials_of_a_task_are_one_pair(make_job):
    a = make_job("a", {f"t{n}": [0, 1, 0, 0] for n in range(8)})
    b = make_job("b", {f"t{n}": [1, 1, 0, 1] for n in range(8)})
    one = only(a, b)
    assert one.tasks == 8 and one.difference == pytest.approx(0.5)
    assert 2 * 0.5**8 <= one.p_value < 0.01


def test_unscored_tasks_are_left_out_and_bound_the_difference(make_job):
    left = {**tasks(0, 8), "lost": [None]}
    right = {**tasks(8, 8), "lost": [1.0], "extra": [1.0]}
    one = only(make_job("a", left), make_job("b", right))
    assert {u["task"]: u["reason"] for u in one.unpaired} == {
        "lost": f"not scored in {one.base}",
        "extra": f"not run in {one.base}",
    }
    assert one.tasks == 8 and one.bounds == pytest.approx((6 / 10, 10 / 10))


def test_a_changed_task_is_not_paired(make_job):
    a, b = make_job("a", tasks(4, 8)), make_job("b", tasks(8, 8))
    make_job("b", {"z": [1.0]}, task_digest="sha256:1")
    make_job("a", {"z": [0.0]})
    one = only(a, b)
    assert one.tasks == 8 and one.unpaired == [{"task": "z", "reason": "the task changed: its digests differ"}]
    other = make_job("c", tasks(4, 8), task_digest="sha256:2")
    with pytest.raises(ConfigurationError, match=r"no task can be compared: .*the task changed"):
        only(a, other)


@pytest.mark.parametrize(("field", "value"), [("image_fidelity", "substituted"), ("verifier_isolation", "shared")])
def test_scores_of_another_kind_get_no_verdict_unless_it_is_allowed(make_job, field, value):
    a, b = make_job("a", tasks(0, 10)), make_job("b", tasks(10, 10), **{field: value})
    one = only(a, b)
    assert one.outcome == "not-comparable" and field in one.verdict
    allowed = only(a, b, allow=[field])
    assert allowed.outcome == "better" and field in fields(allowed), "allowed is not hidden"


def test_other_conditions_are_listed_and_named_in_the_verdict(make_job):
    a = make_job("a", tasks(0, 10), config={"timeout_sec": 60})
    plugins = [{"kind": "sandbox", "name": "box", "distribution": "d", "version": "2"}]
    b = make_job("b", tasks(10, 10), config={"timeout_sec": 600}, core_version="0.9.0", plugins=plugins)
    one = only(a, b)
    assert fields(one) == {
        "core_version": (["0.8.0"], ["0.9.0"]),
        "plugin sandbox:box": (["1"], ["2"]),
        "timeout_sec": (["60"], ["600"]),
    }
    assert "core_version, plugin sandbox:box and timeout_sec may be the cause" in one.verdict
    quiet = only(a, b, allow=["core_version", "plugin sandbox:box", "timeout_sec"])
    assert "may be the cause" not in quiet.verdict and len(quiet.different) == 3


def test_a_field_that_only_one_side_has_differs(make_job):
    a, b = make_job("a", tasks(0, 10)), make_job("b", tasks(10, 10), config={"new_option": 1}, dataset_name="d")
    assert fields(only(a, b)) == {"new_option": ([], ["1"]), "dataset_name": ([], ["d"])}


def test_the_arms_of_one_job(make_job):
    job = make_job("m", tasks(2, 12), arm="one")
    make_job("m", tasks(12, 12), arm="two")
    make_job("m", tasks(3, 12), arm="three")
    sides = load_sides(FILES, [str(job)])
    assert [side.name for side in sides] == ["one", "three", "two"], "by name, where no plan says an order"
    three, two = compare(FILES, sides)
    assert two.outcome == "better" and three.outcome == "undecided"
    assert two.p_value == pytest.approx(2 * 2 * 0.5**10), "adjusted for two questions"
    pair = load_sides(FILES, [f"{job}:two", f"{job}:one"])
    assert [side.name for side in pair] == ["m:two", "m:one"]
    with pytest.raises(ConfigurationError, match="has several arms"):
        load_sides(FILES, [str(job), str(make_job("other", tasks(1, 2)))])
    with pytest.raises(ConfigurationError, match="no arm 'four'"):
        load_sides(FILES, [f"{job}:four", f"{job}:one"])


def test_rewards_are_compared_by_name(make_job):
    a = make_job("a", {f"t{n}": [0.2 + n / 100] for n in range(12)})
    b = make_job("b", {f"t{n}": [0.3 + n / 50] for n in range(12)})
    one = only(a, b, metric="reward")
    assert one.outcome == "better" and one.difference == pytest.approx(0.155)
    with pytest.raises(ConfigurationError, match="no task can be compared"):
        only(a, b, metric="speed")


def test_what_cannot_be_compared_is_refused(make_job):
    a = make_job("a", tasks(1, 2))
    for given in ([str(a)], [str(a), str(a)], [str(a), "nothing"]):
        with pytest.raises(ConfigurationError):
            load_sides(FILES, given)


def test_what_was_never_run_counts_against_the_coverage_of_its_arm(make_job):
    job = make_job("m", tasks(6, 8), arm="one")
    make_job("m", tasks(2, 6), arm="two")
    rows = [{"rollout": f"r{n}", "arm": "one" if n < 8 else "two"} for n in range(16)]
    (job / "job.json").write_text(json.dumps({"items": rows}))
    one, two = load_sides(FILES, [str(job)])
    assert (one.result.coverage, two.result.coverage) == (1.0, 0.75)
    (found,) = stored_jobs(FILES, job)
    result = job_result(FILES, found)
    assert (result.total, result.unscored_by_kind) == (16, {"not-run": 2})
    assert result.arms["two"].unscored_by_kind == {"not-run": 2} and result.arms["one"].unscored == 0


def test_many_arms_of_few_tasks_get_one_consistent_statement(make_job):
    """Nothing passed against everything, three times over: either that is a difference, or the interval reaches zero."""
    job = make_job("m", tasks(0, 6), arm="base")
    for arm in ("x", "y", "z"):
        make_job("m", tasks(6, 6), arm=arm)
    for one in compare(FILES, load_sides(FILES, [str(job)])):
        assert one.p_value == pytest.approx(3 * 0.5**5) and one.interval[0] == 0.0 and one.detectable is None
        assert one.verdict == (
            "No difference can be shown with 6 tasks, however large it is: 7 are the fewest for 3 comparisons at once."
        )
    (alone,) = compare(FILES, load_sides(FILES, [f"{job}:base", f"{job}:x"]))
    assert alone.outcome == "better" and alone.interval[0] > 0, "asked alone, it is one"


def test_the_base_is_the_first_arm_of_the_plan(make_job):
    job = make_job("m", tasks(2, 4), arm="zero")
    make_job("m", tasks(3, 4), arm="alpha")
    rows = [{"rollout": "r1", "arm": "alpha"}, {"rollout": "r2", "arm": "zero"}]
    (job / "job.json").write_text(json.dumps({"items": rows, "arms": ["zero", "alpha"]}))
    assert [side.name for side in load_sides(FILES, [str(job)])] == ["zero", "alpha"]
    (found,) = stored_jobs(FILES, job)
    assert list(job_result(FILES, found).arms) == ["zero", "alpha"]


def test_rewards_that_all_moved_alike_are_a_difference_and_equal_ones_are_none(make_job):
    a, b = make_job("a", {f"t{n}": [0.5] for n in range(20)}), make_job("b", {f"t{n}": [0.6] for n in range(20)})
    assert only(a, b, metric="reward").outcome == "better"
    same = only(a, make_job("c", {f"t{n}": [0.5] for n in range(20)}), metric="reward")
    assert same.outcome == "undecided" and "it is 0 in each of these 20 tasks" in same.verdict


def test_teams_that_differ_in_their_second_agent_differ(make_job):
    teams = [{"writer": {"agent": "agent", "model": "m"}, "reader": {"agent": who, "model": None}} for who in "xy"]
    a, b = (make_job(name, tasks(1, 6), roles=team) for name, team in zip("ab", teams, strict=True))
    assert fields(only(a, b)) == {"agent": (["agent, x"], ["agent, y"])}
