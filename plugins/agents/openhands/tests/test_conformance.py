"""The conformance suite in a real box, with a model: behind a flag, because the agent is large and starts slowly."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from benchflow_testing_kit import AgentConformance

from benchflow_core.contracts import ModelEndpoint

pytestmark = [
    pytest.mark.agents,
    pytest.mark.slow_agents,
    pytest.mark.timeout(1500),
    pytest.mark.xdist_group("agent-openhands"),
    pytest.mark.skipif(not os.environ.get("BENCHFLOW_SLOW_AGENTS"), reason="set BENCHFLOW_SLOW_AGENTS=1 to run it"),
]


class TestOpenHands(AgentConformance):
    @pytest.fixture
    def plugin(self) -> str:
        return "openhands"

    @pytest.fixture
    def sandbox_options(self, agent_cache: Path) -> Mapping[str, str]:
        return {"dir": str(agent_cache / "sandboxes" / "local")}

    @pytest.fixture
    def model_endpoint(self, local_model: Any) -> ModelEndpoint:
        return ModelEndpoint(base_url=local_model.base_url, key="kit-model-key", wire="chat", model="local-model")
