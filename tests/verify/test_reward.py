"""Only a regular file within limits is a reward, whatever the verifier's folder holds."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from benchflow_core.verify.reward import REWARD_BYTES, read_rewards


def _link(path: Path) -> None:
    path.with_name("elsewhere").write_text("1")
    path.symlink_to("elsewhere")


def _large(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(REWARD_BYTES + 1)


@pytest.mark.timeout(30)  # a pipe that is opened waits for ever
@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (_link, "not a regular file"),
        (os.mkfifo, "not a regular file"),
        (Path.mkdir, "a folder"),
        (_large, f"larger than {REWARD_BYTES} bytes"),
    ],
)
def test_only_a_regular_file_within_limits_is_read(tmp_path: Path, make, reason: str) -> None:
    make(tmp_path / "reward.txt")
    found = read_rewards(tmp_path, ["reward.txt", "reward.json"], 0, {})
    assert not found.files
    assert found.unreadable == {"reward.txt": reason}


def test_a_regular_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "reward.txt").write_text("0.5")
    assert read_rewards(tmp_path, ["reward.txt"], 3, {}).files == {"reward.txt": b"0.5"}
