"""The kit's checks: real items, in real worker processes."""

from __future__ import annotations

import pytest
from benchflow_testing_kit import ExecutorConformance


class TestProcesses(ExecutorConformance):
    @pytest.fixture
    def plugin(self) -> str:
        return "processes"
