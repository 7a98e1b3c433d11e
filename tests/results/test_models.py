"""Who writes, indexes or makes a result anew takes its fields from one list."""

from __future__ import annotations

from benchflow_core.contracts import Usage
from benchflow_core.evaluation.stored import StoredFiles
from benchflow_core.results.models import VERDICT, Result, fields_of, marked
from benchflow_core.results.schemas import SCHEMAS
from benchflow_core.rollout.result import RolloutResult


def test_every_published_field_is_written_and_only_some_may_be_absent():
    features = {"env_hash": None, "n_skill_invocations": 2, "skill_mode": None, "world": None}
    result = RolloutResult(
        "t", "t__1", "a", None, "box", usage=Usage(input_tokens=3), dataset_name="d", features=features
    )
    assert result.to_json()["agent_result"]["n_skill_invocations"] == result.n_skill_invocations == 2
    assert [name for name in fields_of(Result) if name in result.to_json()] == [
        name for name in fields_of(Result) if name not in ("verdict", "settlement")
    ]
    assert set(result.to_json()) < set(fields_of(Result)) and result.to_json()["agent_result"]["total_tokens"] == 3
    required = SCHEMAS["result"].model_json_schema()["required"]
    assert "task_name" in required and not {"verdict", "settlement", "dataset_name"}.intersection(required)


def test_what_readers_keep_and_what_a_verdict_replaces_are_fields_of_it():
    assert {"task_name", "rewards", "agent_result", "plugins"} <= set(StoredFiles().columns()) < set(fields_of(Result))
    assert {"rewards", "verifier_error_info", "tests"} <= set(marked(VERDICT)) and "agent" not in marked(VERDICT)
