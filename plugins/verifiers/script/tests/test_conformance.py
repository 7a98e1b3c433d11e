from __future__ import annotations

import pytest

from benchflow_core.testing import VerifierConformance


class TestScript(VerifierConformance):
    @pytest.fixture
    def plugin(self) -> str:
        return "script"
