from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from benchflow_testing_kit import AgentConformance

pytestmark = [pytest.mark.agents, pytest.mark.timeout(900), pytest.mark.xdist_group("agent-opencode")]


class TestOpencode(AgentConformance):
    @pytest.fixture
    def plugin(self) -> str:
        return "opencode"

    @pytest.fixture
    def sandbox_options(self, agent_cache: Path) -> Mapping[str, str]:
        return {"dir": str(agent_cache / "sandboxes" / "local")}

    @pytest.fixture
    def model_endpoint(self) -> None:
        """Without one no session is opened here: this agent's take their time, and tests/agents has a whole one."""
