"""The clouds are driven through their SDKs on one machine: E2B by every test, the others by those that differ most."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

HERE = Path(__file__).parent
CLOUDS = ("daytona", "e2b", "modal")
TELLING = re.compile(
    "talks_both_ways|kills_the_whole_tree|from_a_snapshot_has|reverted_paths|cancelled_start|layer_files|two_thousand|import"
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What one file asks of a cloud stays with one worker, which starts its server once."""
    for item in items:
        if not item.path.is_relative_to(HERE) or (cloud := item.path.relative_to(HERE).parts[0]) not in CLOUDS:
            continue
        item.add_marker(pytest.mark.xdist_group(f"{cloud}-{item.path.stem}"))
        if cloud != "e2b" and item.path.stem == "test_conformance" and not TELLING.search(item.name):
            item.add_marker(pytest.mark.whole)
