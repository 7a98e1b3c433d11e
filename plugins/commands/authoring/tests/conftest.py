from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

HARBOR = {
    "task.toml": 'schema_version = "1.4"\n',
    "instruction.md": "Do it.\n",
    "environment/Dockerfile": "FROM debian:bookworm-slim\nWORKDIR /app\n",
    "tests/test.sh": "#!/bin/sh\necho 1 > /logs/verifier/reward.txt\n",
    "solution/solve.sh": "#!/bin/sh\ntrue\n",
}

MakeTask = Callable[..., Path]


@pytest.fixture
def make_task(tmp_path: Path) -> MakeTask:
    """A Harbor folder; keyword `files` changes it, `None` leaves a file out."""

    def make(name: str = "demo", files: dict[str, str | bytes | None] | None = None) -> Path:
        folder = tmp_path / name
        for relative, content in {**HARBOR, **(files or {})}.items():
            if content is None:
                continue
            file = folder / relative
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content.encode() if isinstance(content, str) else content)
        return folder

    return make


@pytest.fixture
def run_bench(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs the command itself, in an empty folder."""

    def run(*args: object, cwd: Path = tmp_path) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "benchflow_core.cli.main", *map(str, args)]
        return subprocess.run(command, capture_output=True, text=True, cwd=cwd, timeout=60, check=False)

    return run
