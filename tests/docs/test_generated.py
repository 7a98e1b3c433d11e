"""What is generated is up to date, and what is published is what is written."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_cli_reference_and_the_schemas_are_up_to_date():
    done = subprocess.run(
        [sys.executable, "scripts/generate_docs.py", "--check"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_site_builds_without_a_warning(tmp_path):
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", tmp_path]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "plugins" / "hooks" / "index.html").is_file()
    for page in ("tested-agents", "progressive-disclosure", "environment-plane", "architecture"):
        assert (tmp_path / page / "index.html").is_file(), "the public documents link to it"
    assert 'id="yaml-config-format"' in (tmp_path / "reference" / "cli" / "index.html").read_text()
    assert (tmp_path / "examples" / "scene-patterns.ipynb").is_file()
    index = (tmp_path / "llms.txt").read_text()
    assert index.startswith("# BenchFlow\n\n> Run AI agents") and "\n## Reference\n" in index
    pages = {path.parent.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("index.html")}
    listed = re.findall(r"^- \[.+\]\(https://docs\.benchflow\.ai/(.*?)/?\): .{10,}$", index, re.MULTILINE)
    assert {page or "." for page in listed} == pages, "every page is in the index, with what it is about"
