from __future__ import annotations

import pytest
from benchflow_testing_kit import GatewayConformance


class TestRelay(GatewayConformance):
    @pytest.fixture
    def plugin(self) -> str:
        return "relay"
