"""What is brought out of a box, where bringing it out does not end well."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from benchflow_core.results.redact import Redactor
from benchflow_core.rollout.collect import collect_artifacts


class Cut:
    """The way out of a box that is cut off half-way."""

    def __init__(self, as_folder: bool) -> None:
        self._as_folder = as_folder

    async def download(self, source: str, target: Path, **more: Any) -> None:
        file = target / "half" if self._as_folder else target
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("a secret, not yet redacted")
        raise asyncio.CancelledError


@pytest.mark.parametrize("as_folder", [True, False], ids=["folder", "file"])
async def test_a_download_that_is_cut_off_leaves_nothing(tmp_path: Path, as_folder: bool) -> None:
    (tmp_path / "rollout").mkdir()
    with pytest.raises(asyncio.CancelledError):
        await collect_artifacts(Cut(as_folder), (), "/app", tmp_path / "rollout" / "artifacts", Redactor(()))  # type: ignore[arg-type]
    assert list((tmp_path / "rollout").iterdir()) == []
