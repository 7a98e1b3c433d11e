"""The Python that boxes get, taken from this host's, whoever made that."""

from __future__ import annotations

import io
import subprocess
import sysconfig
import tarfile
from pathlib import Path

import pytest

from benchflow_boxkit.interpreter import Interpreter


@pytest.mark.parametrize("has_pip", [True, False], ids=["with-pip", "with-its-wheel"])
def test_it_runs_anywhere_and_has_pip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_pip: bool) -> None:
    if not has_pip:  # as in an environment that uv made, of a Python that has none of its own
        known = sysconfig.get_path
        monkeypatch.setattr(sysconfig, "get_path", lambda name: "/nowhere" if name == "purelib" else known(name))
        monkeypatch.setattr("sys.base_prefix", "/nowhere")
    taken = Interpreter(str(tmp_path), ("benchflow_boxkit",))
    with tarfile.open(fileobj=io.BytesIO(taken.archive())) as tar:
        tar.extraction_filter = getattr(tarfile, "fully_trusted_filter", None)
        tar.extractall(tmp_path)
    script = "import json, sqlite3, ssl, sys, pip; print(sys.prefix, pip.__file__)"
    done = subprocess.run([taken.python, "-c", script], env={}, capture_output=True, text=True, check=True)
    assert done.stdout.split()[1].startswith(f"{tmp_path}/python/lib/")
    said = subprocess.run([taken.python, "-m", "pip", "--version"], env={}, capture_output=True, text=True, check=True)
    assert str(tmp_path) in said.stdout
