"""The commands of the page on environments run as written, and what it says of the manifest is the schema's."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from benchflow_feature_world.schema import Environment

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "environments.md").read_text()
COMMANDS = [
    line for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL) for line in block.splitlines() if line.strip()
]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_runs(command, tmp_path):
    (tmp_path / "benchmarks").symlink_to(ROOT / "benchmarks")
    (tmp_path / "home").mkdir()
    own = {"HOME": str(tmp_path / "home"), "BENCHFLOW_CACHE": str(tmp_path / "cache"), "NO_COLOR": "1"}
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        shlex.split(command), cwd=tmp_path, env={**os.environ, "PATH": path, **own},
        capture_output=True, text=True, timeout=280, check=False,
    )  # fmt: skip
    assert done.returncode == 0, (done.stdout, done.stderr)
    if "eval create" in command:
        assert "(100.0%)" in done.stdout


def test_every_field_of_the_manifest_is_described():
    table = PAGE[PAGE.index("| field |") : PAGE.index("A task without an image")]
    for name in Environment.model_fields:
        assert f"`{name}" in table, name
