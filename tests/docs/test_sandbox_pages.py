"""What the pages say about sandboxes is what the plugins declare."""

from __future__ import annotations

import importlib
import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "scripts" / "sandbox_docs.py"


def test_the_table_and_the_pages_are_up_to_date():
    done = subprocess.run([sys.executable, SCRIPT, "--check"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_capability_has_a_row_and_every_sandbox_a_column():
    spec = importlib.util.spec_from_file_location("sandbox_docs", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    sys.modules["sandbox_docs"] = module
    spec.loader.exec_module(module)
    assert set(module.WORDS) == set(module.Capability)
    names = {sandbox.name for sandbox in module.known()}
    assert names >= {path.parent.name for path in ROOT.glob("plugins/sandboxes/*/pyproject.toml")}


@pytest.mark.parametrize("name", ["daytona", "e2b"])
def test_the_options_of_a_page_are_those_of_the_plugin(name: str):
    options = importlib.import_module(f"benchflow_sandbox_{name}.settings").OPTIONS
    page = (ROOT / "docs" / "sandboxes" / f"{name}.md").read_text()
    assert set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)) == set(options)
