"""The conformance suite, and what a line holds."""

import json

import pytest
from benchflow_core.contracts import ExporterSpec, RolloutRecord
from benchflow_testing_kit import ExporterConformance


class TestExporter(ExporterConformance):
    @pytest.fixture
    def plugin(self) -> str:
        return "{{name}}"

    def test_a_line_holds_reward_and_words(self, spec: ExporterSpec, rollout_record: RolloutRecord) -> None:
        row = json.loads(spec.export(rollout_record, {}))
        assert (row["rewards"], row["said"]) == ({"reward": 1.0}, "hello")
