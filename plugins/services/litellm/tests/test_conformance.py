from __future__ import annotations

import pytest
from benchflow_testing_kit import GatewayConformance

pytestmark = [pytest.mark.litellm, pytest.mark.xdist_group("litellm")]


class TestLiteLLM(GatewayConformance):
    @pytest.fixture
    def plugin(self) -> str:
        return "litellm"
