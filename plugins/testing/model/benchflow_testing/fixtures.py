"""What pytest gets from this package. Nothing heavy is imported until a test asks for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from benchflow_testing.server import LocalModel


@pytest.fixture
def local_model() -> Iterator[LocalModel]:
    """A scripted model on loopback, served from a thread of its own: for sync and async tests alike."""
    from benchflow_testing.server import LocalModel

    with LocalModel() as model:
        yield model
