"""What pytest gets from this package. Nothing heavy is imported until a test asks for it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from benchflow_testing.server import LocalModel


@pytest.fixture(scope="session")
def agent_cache() -> Path:
    """The user's own cache of BenchFlow: real agents are large, so tests install each of them once and keep it."""
    given, home = os.environ.get("BENCHFLOW_CACHE"), os.environ.get("XDG_CACHE_HOME")
    return Path(given) if given else (Path(home) if home else Path.home() / ".cache") / "benchflow"


@pytest.fixture
def local_model() -> Iterator[LocalModel]:
    """A scripted model on loopback, served from a thread of its own: for sync and async tests alike."""
    from benchflow_testing.server import LocalModel

    with LocalModel() as model:
        yield model
