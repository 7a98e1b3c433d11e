"""The conformance suite on a folder."""

from pathlib import Path

import pytest
from benchflow_testing_kit import SourceConformance


class TestSource(SourceConformance):
    @pytest.fixture
    def plugin(self) -> str:
        return "{{name}}"

    @pytest.fixture
    def source_uris(self, tmp_path: Path) -> list[str]:
        (tmp_path / "tasks" / "one").mkdir(parents=True)
        (tmp_path / "tasks" / "one" / "instruction.md").write_text("Do it.")
        return [f"{{name}}:{tmp_path / 'tasks'}"]
