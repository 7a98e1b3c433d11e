"""The conformance suite, and what the command prints."""

import json
from pathlib import Path

import pytest
from benchflow_core.contracts import CommandSpec
from benchflow_testing_kit import CommandConformance
from click.testing import CliRunner


class TestCommand(CommandConformance):
    @pytest.fixture
    def plugin(self) -> str:
        return "{{name}}"

    def test_rollouts_are_listed(self, spec: CommandSpec, tmp_path: Path) -> None:
        for name, content in (("a", {"rewards": {"reward": 1.0}}), ("b", {"rewards": None})):
            (tmp_path / name).mkdir()
            (tmp_path / name / "result.json").write_text(json.dumps(content))
        done = CliRunner().invoke(spec.build(), [str(tmp_path)])
        assert (done.exit_code, done.output) == (0, "a\t1.0\nb\tunscored\n")
