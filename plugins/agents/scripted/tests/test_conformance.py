from __future__ import annotations

from collections.abc import Mapping

import pytest
from benchflow_testing_kit import AgentConformance


class TestScripted(AgentConformance):
    @pytest.fixture
    def plugin(self) -> str:
        return "scripted"

    @pytest.fixture
    def agent_options(self) -> Mapping[str, str]:
        return {"script": "{otherwise: [{run: 'sleep 1'}, {say: Hello.}]}"}
