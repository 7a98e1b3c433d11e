"""What the public documents point at is there, is true, and runs."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from benchflow_core.plugins import registry

ROOT = Path(__file__).parents[2]
RUN = """
import ast, asyncio, inspect, json, sys
names = {}
for cell in json.load(open(sys.argv[1]))["cells"]:
    if cell["cell_type"] == "code":
        code = compile("".join(cell["source"]), cell["id"], "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        work = eval(code, names)
        if inspect.isawaitable(work):
            asyncio.run(work)
"""


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "home").mkdir()
    return {**os.environ, "HOME": str(tmp_path / "home"), "BENCHFLOW_CACHE": str(tmp_path / "cache")}


def test_the_notebook_runs(env, tmp_path):
    notebook = ROOT / "docs" / "examples" / "scene-patterns.ipynb"
    data = json.loads(notebook.read_text())
    assert (data["nbformat"], data["nbformat_minor"]) == (4, 5)
    assert len({cell["id"] for cell in data["cells"]}) == len(data["cells"])
    assert not any(cell.get("outputs") for cell in data["cells"])
    argv = [sys.executable, "-c", RUN, notebook]
    done = subprocess.run(
        argv, cwd=notebook.parent, env={**env, "TMPDIR": str(tmp_path)}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("{'reward': 1.0} after") == 6


def test_the_python_of_progressive_disclosure(env):
    [code] = re.findall(r"```python\n(.*?)```", (ROOT / "docs/progressive-disclosure.md").read_text(), re.DOTALL)
    folder = Path(env["HOME"])
    (folder / "examples").symlink_to(ROOT / "examples")
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, env=env, capture_output=True, text=True)
    assert done.stdout == "{'reward': 1.0} [0.0, 1.0]\n", done.stderr


def test_tested_agents_are_those_that_are_installed():
    rows = re.findall(
        r"^\| `([^`]+)` \| (\S+) \| ([^|]+) \|", (ROOT / "docs/tested-agents.md").read_text(), re.MULTILINE
    )
    written = {name.partition("/")[0]: (version, set(apis.split(", "))) for name, version, apis in rows}
    normal = [one.spec for one in registry().all("agent") if one.spec.purpose == "normal" and one.name != "scripted"]
    specs = [spec for spec in normal if not spec.opens]  # a command and a file of the user's are no agents of ours
    assert {version for version, _ in written.values()} == {spec.version for spec in specs}
    for agent in (one for one in registry().all("agent") if one.spec.wires):
        [(version, apis)] = [
            written[name] for name in (agent.name, *agent.aliases, agent.spec.name) if name in written
        ][:1]
        assert version == agent.spec.version and apis <= set(agent.spec.wires), agent.name


def test_agents_md_is_one_page_whose_places_exist():
    text = (ROOT / "AGENTS.md").read_text()
    assert len(text.splitlines()) < 70
    named = re.findall(r"`([\w./-]+/[\w.-]*)`", text)
    assert (
        named
        and [name for name in named if not (ROOT / name).exists() and not (ROOT / "benchflow_core" / name).exists()]
        == []
    )


def test_the_reviewer_ablation(env, tmp_path):
    """Its three conditions, with the scripted agents of the example."""
    example = ROOT / "examples" / "reviewer-ablation"
    argv = [sys.executable, ROOT / "experiments/reviewer_ablation.py", "--tasks-dir", example / "tasks"]
    argv += ["--agent", "scripted", "--model", "", "--sandbox", "local", "--concurrency", "2", "--jobs-dir", "jobs"]
    for role, file in (("coder", "coder"), ("reviewer", "reviewer"), ("spec-reviewer", "reviewer-with-spec")):
        argv += [f"--{role}-option", f"script={example / file}.yaml"]
    done = subprocess.run(argv, cwd=tmp_path, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    rows = [re.split(r"\s{2,}", line.strip()) for line in done.stdout.splitlines()[:4]]
    assert rows == [
        ["condition", "won", "win rate", "over the baseline"],
        ["baseline", "1/6", "16.7%"],
        ["reviewer", "3/6", "50.0%", "+33.3 points"],
        ["reviewer+spec", "6/6", "100.0%", "+83.3 points"],
    ]
