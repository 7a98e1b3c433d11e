"""The conformance suite, against the kit's own model provider."""

import pytest
from benchflow_testing_kit import GatewayConformance


class TestGateway(GatewayConformance):
    @pytest.fixture
    def plugin(self) -> str:
        return "{{name}}"
