"""Which conformance tests run when: those that tell most with every commit, the rest of Docker's with every merge.

The clouds are driven through their SDKs on one machine: E2B by every test, the others by those that differ most.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

HERE = Path(__file__).parent
CLOUDS = ("daytona", "e2b", "modal")
TELLING = re.compile(
    "talks_both_ways|kills_the_whole_tree|from_a_snapshot_has|reverted_paths|cancelled_start|layer_files|two_thousand|import"
)

DOCKER = re.compile(
    f"{TELLING.pattern}|exit_code|stdin|stdout|restore|cut_off|running_box|each_other|ports|crash|services|entrypoint|"
    "upload|download|limit|timeout"
)
"""What Docker's suite runs with every commit."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What one file asks of a cloud stays with one worker, which starts its server once."""
    for item in items:
        cloud = item.path.relative_to(HERE).parts[0] if item.path.is_relative_to(HERE) else ""
        if cloud == "docker" and item.path.stem == "test_conformance" and not DOCKER.search(item.name):
            item.add_marker(pytest.mark.merge)
        if cloud not in CLOUDS:
            continue
        item.add_marker(pytest.mark.xdist_group(f"{cloud}-{item.path.stem}"))
        if cloud != "e2b" and item.path.stem == "test_conformance" and not TELLING.search(item.name):
            item.add_marker(pytest.mark.nightly)
