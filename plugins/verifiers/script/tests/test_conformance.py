from __future__ import annotations

import pytest
from benchflow_testing_kit import VerifierConformance


class TestScript(VerifierConformance):
    @pytest.fixture
    def plugin(self) -> str:
        return "script"
