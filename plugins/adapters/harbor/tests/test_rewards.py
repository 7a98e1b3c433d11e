"""The two reward dialects, point by point, from one list of cases."""

from __future__ import annotations

import json
from typing import Any

import pytest
from benchflow_adapter_harbor.rewards import BenchFlowDialect, HarborDialect

from benchflow_core.contracts.tasks import RewardFiles
from benchflow_core.errors import RewardInvalid, RewardMissing

Expected = dict[str, Any] | str
"""Rewards, or the code of the refusal."""

CASES: list[tuple[str, str | None, str | None, Expected, Expected]] = [
    # what, reward.txt, reward.json, Harbor, BenchFlow
    ("nothing", None, None, "missing", "missing"),
    ("one", "1", None, {"reward": 1.0}, {"reward": 1.0}),
    ("line end", "1.0\n", None, {"reward": 1.0}, {"reward": 1.0}),
    ("spaces", "  0.25 ", None, {"reward": 0.25}, {"reward": 0.25}),
    ("line end of another system", "1\r\n", None, {"reward": 1.0}, {"reward": 1.0}),
    ("mark of the byte order", "\ufeff1", None, "unparsable", "unparsable"),
    ("the same before json", None, '\ufeff{"reward": 1}', "unparsable", "unparsable"),
    ("the same key twice", None, '{"reward": 0, "reward": 1}', {"reward": 1}, {"reward": 1}),
    ("negative", "-1", None, {"reward": -1.0}, "out-of-range"),
    ("above one", "5", None, {"reward": 5.0}, "out-of-range"),
    ("underscore", "1_0", None, {"reward": 10.0}, "out-of-range"),
    ("exponent", "1e-3", None, {"reward": 0.001}, {"reward": 0.001}),
    ("empty text", "", None, "empty", "empty"),
    ("only a line end", "\n", None, "unparsable", "unparsable"),
    ("a word", "pass", None, "unparsable", "unparsable"),
    ("two numbers", "1 2", None, "unparsable", "unparsable"),
    ("nan", "nan", None, "not-finite", "not-finite"),
    ("inf", "inf", None, "not-finite", "not-finite"),
    ("too large", "1e999", None, "not-finite", "not-finite"),
    ("object", None, '{"reward": 1}', {"reward": 1}, {"reward": 1}),
    ("integers stay", None, '{"reward": 1, "n": 0}', {"reward": 1, "n": 0}, {"reward": 1, "n": 0}),
    ("true", None, '{"reward": true}', {"reward": 1.0}, "not-a-number"),
    ("false beside", None, '{"reward": 1, "a": false}', {"reward": 1, "a": 0.0}, "not-a-number"),
    ("no numbers at all", None, "{}", {}, "no-score"),
    ("metrics alone", None, '{"a": 1}', {"a": 1}, "no-score"),
    ("out of range", None, '{"reward": 2}', {"reward": 2}, "out-of-range"),
    ("metric out of range", None, '{"reward": 1, "a": 7}', {"reward": 1, "a": 7}, "out-of-range"),
    ("empty json", None, "", "empty", "empty"),
    ("empty json beside good text", "1", "", "empty", "empty"),
    ("broken json beside good text", "1", "{", "unparsable", "unparsable"),
    ("bare number", None, "1", "not-an-object", "not-an-object"),
    ("list", None, "[1]", "not-an-object", "not-an-object"),
    ("null", None, "null", "not-an-object", "not-an-object"),
    ("text value", None, '{"reward": "1"}', "not-a-number", "not-a-number"),
    ("null value", None, '{"reward": null}', "not-a-number", "not-a-number"),
    ("nested", None, '{"reward": {"a": 1}}', "not-a-number", "not-a-number"),
    ("NaN", None, '{"reward": NaN}', "not-finite", "out-of-range"),
    ("1e309", None, '{"reward": 1e309}', "not-finite", "out-of-range"),
    ("a huge integer", None, '{"reward": %s}' % ("9" * 400), "not-finite", "out-of-range"),
    ("an endless integer", None, '{"reward": %s}' % ("9" * 5000), "unparsable", "unparsable"),
    ("deep", None, "[" * 100_000, "unparsable", "unparsable"),
    ("json wins over text", "0", '{"reward": 1}', {"reward": 1}, "disagree"),
    ("both agree", "0.5\n", '{"reward": 0.5}', {"reward": 0.5}, {"reward": 0.5}),
    ("both agree closely", "0.5", '{"reward": 0.5000000001}', {"reward": 0.5000000001}, {"reward": 0.5000000001}),
    ("text is broken", "x", '{"reward": 1}', {"reward": 1}, "unparsable"),
    ("details", None, '{"reward": 1, "details": {"x": 1}}', "not-a-number", {"reward": 1}),
    ("unknown text", None, '{"reward": 1, "done": "yes"}', "not-a-number", "not-a-number"),
    ("metrics table", None, '{"reward": 1, "metrics": {"a": 0.5}}', "not-a-number", {"a": 0.5, "reward": 1}),
    ("rubric", None, '{"reward": 1, "rubric": [{"name": "x", "score": 0.5}]}', "not-a-number", {"reward": 1}),
    ("rubric without score", None, '{"reward": 1, "rubric": [{"name": "x"}]}', "not-a-number", "bad-structure"),
    ("space", None, '{"reward": 1, "space": "output"}', "not-a-number", {"reward": 1}),
    ("unknown space", None, '{"reward": 1, "space": "outer"}', "not-a-number", "bad-structure"),
    ("granularity", None, '{"reward": 1, "granularity": "step"}', "not-a-number", {"reward": 1}),
    (
        "aggregate",
        None,
        '{"a": 1, "b": 0, "aggregate": {"method": "mean"}}',
        "not-a-number",
        {"a": 1, "b": 0, "reward": 0.5},
    ),
    (
        "aggregate beside a score",
        None,
        '{"reward": 1, "a": 0, "aggregate": {"method": "mean"}}',
        "not-a-number",
        {"a": 0, "reward": 1},
    ),
    (
        "aggregate agrees with text",
        "0.5",
        '{"a": 0.5, "aggregate": {"method": "mean"}}',
        "not-a-number",
        {"a": 0.5, "reward": 0.5},
    ),
    ("aggregate against text", "1", '{"a": 0.5, "aggregate": {"method": "mean"}}', "not-a-number", "disagree"),
    ("aggregate of nothing", None, '{"aggregate": {"method": "mean"}}', "not-a-number", "no-score"),
    ("not utf-8", None, "\udcff", "unparsable", "unparsable"),
]


def parse(dialect: Any, text: str | None, data: str | None, **more: Any) -> Expected:
    given = {"reward.txt": text, "reward.json": data}
    files = {name: found.encode("utf-8", "surrogateescape") for name, found in given.items() if found is not None}
    try:
        return dialect.parse(RewardFiles(files, exit_code=1, **more))
    except (RewardInvalid, RewardMissing) as error:
        assert error.kind == "verifier"
        return str(error.details["code"])


def same(found: Expected, expected: Expected) -> bool:
    if isinstance(found, str) or isinstance(expected, str):
        return found == expected
    return found == expected and all(type(found[name]) is type(expected[name]) for name in expected)


@pytest.mark.parametrize(("text", "data", "harbor"), [c[1:4] for c in CASES], ids=[c[0] for c in CASES])
def test_harbor(text: str | None, data: str | None, harbor: Expected) -> None:
    assert same(parse(HarborDialect(), text, data), harbor)


@pytest.mark.parametrize(("text", "data", "benchflow"), [(*c[1:3], c[4]) for c in CASES], ids=[c[0] for c in CASES])
def test_benchflow(text: str | None, data: str | None, benchflow: Expected) -> None:
    assert same(parse(BenchFlowDialect(), text, data), benchflow)


def test_the_dialects_differ_where_they_should() -> None:
    differing = {what for what, _, _, harbor, benchflow in CASES if harbor != benchflow}
    assert {"negative", "true", "no numbers at all", "json wins over text", "details", "aggregate"} <= differing


@pytest.mark.parametrize("dialect", [HarborDialect(), BenchFlowDialect()])
def test_an_unreadable_file_is_never_passed_over(dialect: Any) -> None:
    assert parse(dialect, "1", None, unreadable={"reward.json": "a link"}) == "unreadable"


def test_messages_carry_file_and_content() -> None:
    with pytest.raises(RewardInvalid) as caught:
        HarborDialect().parse(RewardFiles({"reward.txt": b"pass\n"}, 3))
    assert str(caught.value) == r"reward.txt must hold one number ('pass\n')."
    assert caught.value.details == {"code": "unparsable", "file": "reward.txt", "content": r"'pass\n'", "exit_code": 3}


METRICS = {"a": 1.0, "b": 0.4}
AGGREGATES = {
    "mean": ({"method": "mean"}, 0.7),
    "weighted mean": ({"method": "weighted_mean", "weights": {"a": 3, "b": 1}}, 0.85),
    "hyphen": ({"method": "weighted-mean"}, 0.7),
    "weighted sum": ({"method": "weighted_sum", "weights": {"a": 0.5, "b": 0.5}}, 0.7),
    "sum out of range": ({"method": "weighted_sum", "weights": {"a": 1, "b": 1}}, "out-of-range"),
    "sum without weights": ({"method": "weighted_sum"}, "bad-structure"),
    "all pass": ({"method": "all_pass"}, 0.0),
    "any pass": ({"method": "any_pass"}, 1.0),
    "threshold by default 0.7": ({"method": "threshold"}, 1.0),
    "threshold above": ({"method": "threshold", "threshold": 0.71}, 0.0),
    "threshold that is none": ({"method": "threshold", "threshold": 2}, "bad-structure"),
    "a weight is missing": ({"method": "weighted_mean", "weights": {"a": 1}}, "bad-structure"),
    "a weight too many": ({"method": "weighted_mean", "weights": {"a": 1, "b": 1, "c": 1}}, "bad-structure"),
    "negative weight": ({"method": "weighted_mean", "weights": {"a": -1, "b": 2}}, "bad-structure"),
    "weights of nothing": ({"method": "weighted_mean", "weights": {"a": 0, "b": 0}}, "bad-structure"),
    "unknown": ({"method": "median"}, "bad-structure"),
    "no method": ({"weights": {}}, "bad-structure"),
    "fallback": ({"fallback": "mean"}, 0.7),
    "criteria": ({"method": "mean", "criteria": ["a", "b"]}, 0.7),
    "other criteria": ({"method": "mean", "criteria": ["a"]}, "bad-structure"),
    "another field": ({"method": "mean", "field": "x"}, "bad-structure"),
}


@pytest.mark.parametrize("case", AGGREGATES)
@pytest.mark.parametrize("nested", [True, False])
def test_aggregate_policies(case: str, nested: bool) -> None:
    policy, expected = AGGREGATES[case]
    found = parse(
        BenchFlowDialect(policy=tuple(policy.items())), None, json.dumps({"metrics": METRICS} if nested else METRICS)
    )
    assert found == expected if isinstance(expected, str) else found["reward"] == pytest.approx(expected)


def test_a_wider_range() -> None:
    wide = BenchFlowDialect(reward_range=(-1.0, 2.0))
    assert parse(wide, "-1", None) == {"reward": -1.0}
    assert parse(wide, None, '{"reward": 2, "a": -0.5}') == {"reward": 2, "a": -0.5}
    assert parse(wide, "2.1", None) == "out-of-range"


def test_lenient() -> None:
    lenient = BenchFlowDialect(lenient=True)
    assert parse(lenient, None, '{"reward": 1, "done": "yes", "a": 9}') == {"reward": 1}
    assert parse(lenient, None, '{"score": 0.5, "metrics": {"a": "x"}, "space": 3}') == {"reward": 0.5}
    assert parse(lenient, None, '{"done": true}') == "no-score"


@pytest.mark.parametrize(
    ("steps", "mean", "final"),
    [
        ([{"reward": 1.0}, {"reward": 0.0}], {"reward": 0.5}, {"reward": 0.0}),
        ([{"reward": 1.0}, None], {"reward": 1.0}, {}),
        ([{"a": 1.0}, {"b": 1.0}], {"a": 0.5, "b": 0.5}, {"b": 1.0}),
        ([{}, {"a": 1.0}], {"a": 0.5}, {"a": 1.0}),
        ([None, None], {}, {}),
        ([], {}, {}),
    ],
)
@pytest.mark.parametrize("dialect", [HarborDialect, BenchFlowDialect])
def test_steps_together(dialect: Any, steps: Any, mean: Any, final: Any) -> None:
    assert dialect().combine(steps) == mean
    assert dialect(last_step=True).combine(steps) == final
