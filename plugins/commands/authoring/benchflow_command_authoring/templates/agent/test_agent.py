"""The conformance suite, and one test of what this agent does."""

from pathlib import Path

import pytest
from benchflow_core.contracts import Sandbox
from benchflow_testing_kit import AgentConformance


class TestAgent(AgentConformance):
    @pytest.fixture
    def plugin(self) -> str:
        return "{{name}}"

    @pytest.fixture
    def prompt(self) -> str:
        return "run: echo working; sleep 1"

    async def test_it_runs_commands_in_the_working_directory(self, opens, box: Sandbox, tmp_path: Path) -> None:
        live = await opens()
        outcome = await live.session.prompt("run: echo done >proof")
        assert outcome.stop_reason == "end_turn"
        await box.download(f"{box.info.workdir}/proof", tmp_path / "proof")
        assert (tmp_path / "proof").read_text() == "done\n"
