"""The plugin modules are featherweight, and the formats are told apart."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from benchflow_adapter_harbor import harbor, taskmd


@pytest.mark.parametrize("module", ["harbor", "taskmd"])
def test_importing_the_plugin_imports_nothing_heavy(module: str) -> None:
    code = (
        f"import sys; from benchflow_adapter_harbor.{module} import benchflow_adapter as hook; hook();"
        "print([m for m in ('yaml', 'pydantic', 'tomllib', 'asyncio', 'json') if m in sys.modules])"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"


def test_loading_needs_no_pydantic(write) -> None:
    folder = write({"task.toml": "", "instruction.md": "x", "tests/test.sh": "x", "environment/Dockerfile": "x"})
    code = (
        "import sys; from pathlib import Path; from benchflow_adapter_harbor.harbor import load;"
        f"load(Path({str(folder)!r})); print([m for m in ('yaml', 'pydantic') if m in sys.modules])"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"task.toml": ""}, (True, False)),
        ({"task.md": "---\n---\n"}, (False, True)),
        ({"task.md": "notes"}, (False, True)),
        ({"task.toml": "", "task.md": "notes"}, (True, False)),
        ({"task.toml": "", "task.md": "---\n---\n"}, (True, True)),
        ({"README.md": ""}, (False, False)),
    ],
)
def test_detection(write, files: dict[str, str], expected: tuple[bool, bool]) -> None:
    folder: Path = write(files)
    assert (harbor.detect(folder), taskmd.detect(folder)) == expected


def test_a_document_comes_before_a_folder_of_the_other_format() -> None:
    assert taskmd.benchflow_adapter().rank < harbor.benchflow_adapter().rank
