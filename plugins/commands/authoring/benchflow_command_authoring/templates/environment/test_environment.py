"""The conformance suite."""

import pytest
from benchflow_core.testing import EnvironmentConformance


class TestEnvironment(EnvironmentConformance):
    @pytest.fixture
    def plugin(self) -> str:
        return "{{name}}"
