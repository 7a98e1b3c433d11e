"""A Modal of this machine's own for every test."""

from __future__ import annotations

import pytest

pytest.importorskip("modal", reason="the Modal SDK is not installed")
pytest.importorskip("benchflow_testing_clouds", reason="the local clouds are not installed")

from benchflow_testing_clouds.control import Remote


@pytest.fixture(scope="module", autouse=True)
def cloud(modal_cloud: Remote) -> Remote:
    return modal_cloud
