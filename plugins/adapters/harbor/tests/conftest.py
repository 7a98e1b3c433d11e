from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from benchflow_adapter_harbor.harbor_load import load_harbor
from benchflow_adapter_harbor.taskmd_load import load_taskmd

from benchflow_core.contracts.tasks import Task


@pytest.fixture
def write(tmp_path: Path) -> Callable[[dict[str, str]], Path]:
    def make(files: dict[str, str]) -> Path:
        shutil.rmtree(tmp_path / "task", ignore_errors=True)
        for name, text in files.items():
            file = tmp_path / "task" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        return tmp_path / "task"

    return make


@pytest.fixture
def harbor(write: Callable[[dict[str, str]], Path]) -> Callable[..., Task]:
    """Loads a Harbor task from the text of its task.toml; `None` as a file's text leaves it out."""

    def load(config: str = "", **files: str | None) -> Task:
        usual = {"instruction.md": "Do it.\n", "environment/Dockerfile": "FROM x\n", "tests/test.sh": "#!/bin/sh\n"}
        wanted = {**usual, **files, "task.toml": config}
        return load_harbor(write({name: text for name, text in wanted.items() if text is not None}))

    return load


@pytest.fixture
def taskmd(write: Callable[[dict[str, str]], Path]) -> Callable[..., Task]:
    """Loads a task.md from its frontmatter and body."""

    def load(frontmatter: str = "", body: str = "Do it.\n", **files: str | None) -> Task:
        usual = {"environment/Dockerfile": "FROM x\n", "verifier/test.sh": "#!/bin/sh\n"}
        wanted = {**usual, **files, "task.md": f"---\n{frontmatter}---\n\n{body}"}
        return load_taskmd(write({name: text for name, text in wanted.items() if text is not None}))

    return load
