"""The conformance suite, and where the text is when."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from benchflow_core.contracts import FeatureBox, FeatureRun
from benchflow_testing_kit import FeatureConformance


class TestFeature(FeatureConformance):
    @pytest.fixture
    def plugin(self) -> str:
        return "{{name}}"

    @pytest.fixture
    def feature_settings(self, tmp_path: Path) -> Mapping[str, str]:
        (tmp_path / "text.txt").write_text("Be brief.")
        return {"{{identifier}}": str(tmp_path / "text.txt")}

    async def test_the_text_is_there_only_for_agents(self, run: FeatureRun, feature_box: FeatureBox) -> None:
        look = ("cat", "/{{name}}.txt")
        async with run.agent(feature_box):
            assert (await feature_box.sandbox.exec(look, cwd="/")).stdout == b"Be brief."
        assert (await feature_box.sandbox.exec(look, cwd="/")).exit_code == 1
