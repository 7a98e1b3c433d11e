from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from benchflow_testing_kit import AgentConformance

pytestmark = [pytest.mark.agents, pytest.mark.timeout(900), pytest.mark.xdist_group("agent-pi")]


class TestPi(AgentConformance):
    @pytest.fixture
    def plugin(self) -> str:
        return "pi-acp"

    @pytest.fixture
    def sandbox_options(self, agent_cache: Path) -> Mapping[str, str]:
        return {"dir": str(agent_cache / "sandboxes" / "local")}
