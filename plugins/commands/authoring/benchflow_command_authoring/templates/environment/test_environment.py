"""The conformance suite."""

import pytest
from benchflow_testing_kit import EnvironmentConformance


class TestEnvironment(EnvironmentConformance):
    @pytest.fixture
    def plugin(self) -> str:
        return "{{name}}"
