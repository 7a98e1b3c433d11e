"""An E2B of this machine's own for every test."""

from __future__ import annotations

import pytest

pytest.importorskip("e2b", reason="the E2B SDK is not installed")
pytest.importorskip("benchflow_testing_clouds", reason="the local clouds are not installed")

from benchflow_testing_clouds.control import Remote


@pytest.fixture(scope="module", autouse=True)
def cloud(e2b_cloud: Remote) -> Remote:
    return e2b_cloud
