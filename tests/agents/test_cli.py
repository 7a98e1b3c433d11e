"""`bench agent`: as the documentation shows it."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

SCRIPT = "script={otherwise: [{say: Hello.}]}"


@pytest.fixture
def bench(tmp_path, agent_cache):
    def run(*args, code=0, **env):
        given = {**os.environ, "BENCHFLOW_CACHE": str(agent_cache), "NO_COLOR": "1", **env}
        argv = [sys.executable, "-m", "benchflow_core.cli.main", *args]
        done = subprocess.run(argv, cwd=tmp_path, env=given, capture_output=True, text=True, timeout=280, check=False)
        assert done.returncode == code, (done.stdout, done.stderr)
        return done

    return run


def test_list_and_show(bench):
    rows = {row["name"]: row for row in json.loads(bench("agent", "list", "--json").stdout)}
    table = {name: (row["protocol"], row["auth"], row["aliases"]) for name, row in rows.items()}
    assert table["codex-acp"] == (
        "benchflow_acp",
        "OPENAI_API_KEY, CODEX_API_KEY, CODEX_ACCESS_TOKEN or host login",
        ["codex"],
    )
    assert table["gemini"][1].endswith("or host login") and table["opencode"][1] == "inferred from model/provider"
    assert table["claude-agent-acp"][2] == ["claude"] and table["pi-acp"][2] == ["pi"]
    assert list(rows) == sorted(rows)
    shown = bench("agent", "show", "claude").stdout
    assert "claude-agent-acp@0.99.1" in shown and "~/.claude/.credentials.json" in shown
    assert "our tests run a stand-in" in bench("agent", "show", "harvey-lab").stdout


def test_check_says_what_works(bench):
    done = bench("agent", "check", "scripted", "--sandbox", "local", "--agent-option", SCRIPT)
    lines = [line.split()[:2] for line in done.stdout.splitlines()]
    assert lines == [["✓", "install"], ["✓", "session"], ["✓", "prompt"]]


def test_check_says_what_does_not(bench, tmp_path):
    (tmp_path / "none.toml").write_text('name = "none"\nversion = "1"\nlaunch = ["/no/such/program"]\n')
    found = json.loads(bench("agent", "check", "./none.toml", "--sandbox", "local", "--json", code=1).stdout)
    assert [(c["name"], c["status"]) for c in found["checks"]] == [("install", "ok"), ("session", "fail")]
    assert "was not found" in found["checks"][1]["detail"] and found["ok"] is False


def test_check_says_in_one_line_why_an_install_failed(bench, tmp_path):
    command = json.dumps(["sh", "-c", "seq 1000 >&2; echo cause: no such package >&2; exit 3"])
    install = f"[install]\nrun = [{command}]\n"
    (tmp_path / "none.toml").write_text(f'name = "none"\nversion = "1"\nlaunch = ["true"]\n{install}')
    [said] = bench("agent", "check", "./none.toml", "--sandbox", "local", code=1).stdout.splitlines()
    assert "ended with 3: … " in said and " 1000 cause: no such package " in said and len(said) < 620


def test_check_without_the_local_model_says_what_to_install(bench, tmp_path):
    (tmp_path / "benchflow_testing.py").write_text("raise ImportError('not here')\n")
    done = bench("agent", "check", "scripted", code=1, PYTHONPATH=str(tmp_path))
    assert "pip install benchflow-testing" in done.stderr


@pytest.mark.agents
@pytest.mark.xdist_group("agent-pi")
def test_check_of_a_real_agent(bench):
    found = json.loads(bench("agent", "check", "pi", "--sandbox", "local", "--json").stdout)
    assert found["ok"] is True, found
    assert [c["name"] for c in found["checks"]] == [
        "install",
        "session",
        "prompt",
        "tool call",
        "second prompt",
        "model calls",
        "failing model",
    ]
