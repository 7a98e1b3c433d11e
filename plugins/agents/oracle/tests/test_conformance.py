from __future__ import annotations

import pytest
from benchflow_testing_kit import AgentConformance


class TestOracle(AgentConformance):
    @pytest.fixture
    def plugin(self) -> str:
        return "oracle"


class TestNop(AgentConformance):
    @pytest.fixture
    def plugin(self) -> str:
        return "nop"
