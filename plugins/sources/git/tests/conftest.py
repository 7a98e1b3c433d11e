from __future__ import annotations

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
