from __future__ import annotations

from pathlib import Path

import pytest
from benchflow_testing_kit import AdapterConformance

EXAMPLES = Path(__file__).parents[4] / "examples" / "tasks"


class TestHarbor(AdapterConformance):
    @pytest.fixture
    def plugin(self) -> str:
        return "harbor"

    @pytest.fixture
    def good_tasks(self) -> list[Path]:
        return [EXAMPLES / "hello-file", EXAMPLES / "two-step-notes", EXAMPLES / "word-count"]


class TestTaskMd(AdapterConformance):
    @pytest.fixture
    def plugin(self) -> str:
        return "task-md"

    @pytest.fixture
    def good_tasks(self) -> list[Path]:
        return [EXAMPLES / "hello-doc"]
