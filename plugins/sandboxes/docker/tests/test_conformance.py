"""The sandbox suite of the core, on the engine that answers here."""

from __future__ import annotations

import pytest
from benchflow_testing_kit.sandbox import SandboxConformance
from benchflow_testing_kit.sandbox.net import reachable_outside

pytestmark = pytest.mark.docker


class TestDocker(SandboxConformance):
    @pytest.fixture
    def plugin(self) -> str:
        return "docker"

    @pytest.fixture
    def public_url(self) -> str | None:
        return reachable_outside()
