"""The sandbox suite of the core, as the user that runs it."""

from __future__ import annotations

import pytest
from benchflow_testing_kit.sandbox import SandboxConformance
from benchflow_testing_kit.sandbox.net import reachable_outside


class TestLocal(SandboxConformance):
    @pytest.fixture
    def plugin(self) -> str:
        return "local"

    @pytest.fixture
    def public_url(self) -> str | None:
        return reachable_outside()
