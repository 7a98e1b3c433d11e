"""The conformance suite, the lines it writes, and the panels it adds."""

from __future__ import annotations

import json

import pytest
from benchflow_command_results.tool_calls.calls import calls
from benchflow_testing_kit import ExporterConformance

from benchflow_core.contracts import ExporterSpec, JobResults, RolloutRecord

EVENTS = [
    {"kind": "turn_started", "at": 0.0, "turn": 1, "data": {"prompt": "do it"}},
    {
        "kind": "tool_call",
        "at": 1.0,
        "turn": 1,
        "role": "coder",
        "data": {"toolCallId": "a", "kind": "execute", "title": "ls"},
    },
    {
        "kind": "tool_call",
        "at": 1.5,
        "turn": 1,
        "role": "coder",
        "data": {"toolCallId": "b", "kind": "read", "title": "x"},
    },
    {"kind": "tool_call_update", "at": 3.0, "turn": 1, "data": {"toolCallId": "a", "status": "completed"}},
    {"kind": "tool_call_update", "at": 3.5, "turn": 1, "data": {"toolCallId": "b", "status": "failed"}},
    {"kind": "tool_call", "at": 4.0, "turn": 1, "data": {"toolCallId": "c", "title": "never ends"}},
    {"kind": "tool_call_update", "at": 5.0, "data": "not an object"},
]


@pytest.fixture
def played(tmp_path) -> RolloutRecord:
    return RolloutRecord(tmp_path, {"task_name": "t", "rollout_name": "t__1"}, {}, lambda: EVENTS)


class TestToolCalls(ExporterConformance):
    @pytest.fixture
    def plugin(self) -> str:
        return "tool-calls"

    def test_one_line_per_call(self, spec: ExporterSpec, played) -> None:
        rows = [json.loads(line) for line in spec.export(played, {}).splitlines()]
        assert [(row["title"], row["status"], row["seconds"]) for row in rows] == [
            ("ls", "completed", 2.0),
            ("x", "failed", 2.0),
            ("never ends", "pending", None),
        ]
        assert {row["task"] for row in rows} == {"t"} and rows[0]["role"] == "coder"

    def test_the_panel_of_a_rollout(self, spec: ExporterSpec, played) -> None:
        panel = spec.panel(played)
        assert panel.title == "Tools"
        assert sorted(panel.blocks[0].rows) == [["execute", 1, 0, 2.0], ["other", 1, 0, 0.0], ["read", 1, 1, 2.0]]

    def test_a_rollout_without_tools_has_no_panel(self, spec: ExporterSpec, tmp_path) -> None:
        assert spec.panel(RolloutRecord(tmp_path, {}, {}, lambda: [])) is None

    def test_the_panel_of_a_job_is_made_from_the_index(self, spec: ExporterSpec, tmp_path) -> None:
        rows = [{"n_tool_calls": n, "outcome": o} for n, o in ((4, "passed"), (2, "passed"), (9, "failed"))]
        panel = spec.job_panel(JobResults(tmp_path, "j", rows, [], {}, finished=True, running=False))
        assert panel.blocks[0].values == {"failed": 9.0, "passed": 3.0}


def test_calls_of_two_sessions_do_not_mix(tmp_path):
    one = {"toolCallId": "a", "status": "completed"}
    events = [{"kind": "tool_call", "at": 0, "session": s, "turn": 1, "data": one} for s in ("x", "y")]
    assert len(list(calls(RolloutRecord(tmp_path, {}, {}, lambda: events)))) == 2
