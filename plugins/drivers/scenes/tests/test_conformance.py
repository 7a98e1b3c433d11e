"""The default driver is a plugin like any other."""

from __future__ import annotations

import pytest
from benchflow_testing_kit import DriverConformance

from benchflow_core.contracts import DriveStep


class TestScenes(DriverConformance):
    @pytest.fixture
    def plugin(self) -> str:
        return "scenes"

    @pytest.fixture
    def driver_params(self) -> dict[str, object]:
        return {
            "steps": [
                DriveStep("1", "first", "agent", None, ends_scene=True),
                DriveStep("2", "second", "agent", "Go on."),
            ]
        }
