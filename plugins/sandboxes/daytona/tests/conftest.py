"""A Daytona of this machine's own for every test."""

from __future__ import annotations

import pytest

pytest.importorskip("daytona", reason="the Daytona SDK is not installed")
pytest.importorskip("benchflow_testing_clouds", reason="the local clouds are not installed")

from benchflow_testing_clouds.control import Remote


@pytest.fixture(scope="module", autouse=True)
def cloud(daytona_cloud: Remote) -> Remote:
    return daytona_cloud
