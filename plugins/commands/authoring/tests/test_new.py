"""`bench plugins new`: what it writes, and what it refuses."""

from __future__ import annotations

import compileall
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from benchflow_command_authoring.new import create
from benchflow_command_authoring.render import TEMPLATES

from benchflow_core.hookspecs import GROUPS


def bench(*args: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    code = "import sys; from benchflow_core.cli.main import main; sys.argv[0] = 'bench'; sys.exit(main())"
    argv = [sys.executable, "-c", code, *args]
    return subprocess.run(argv, cwd=cwd, capture_output=True, text=True, timeout=60, check=False)


def test_every_kind_has_a_template():
    assert {path.name for path in TEMPLATES.iterdir()} == {*GROUPS, "common"}


@pytest.mark.parametrize("kind", GROUPS)
def test_package_is_complete(kind, tmp_path):
    folder, files = create(kind, "two-words", tmp_path, 'Ada "Q" Lovelace')
    module = f"benchflow_{kind}_two_words"
    wanted = {".gitignore", "LICENSE", "README.md", "pyproject.toml", f"tests/test_{kind}.py"}
    assert wanted | {f"{module}/__init__.py", f"{module}/plugin.py", f"{module}/py.typed"} <= set(files)
    text = "".join((folder / name).read_text() for name in files)
    assert not re.search(r"\{\{\w+\}\}|__name__@", text)
    project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    assert project["name"] == f"benchflow-{kind}-two-words"
    assert project["authors"] == [{"name": 'Ada "Q" Lovelace'}]
    assert project["entry-points"] == {GROUPS[kind]: {"two-words": f"{module}.plugin"}}
    assert compileall.compile_dir(folder, quiet=1, legacy=True)


@pytest.mark.parametrize("kind", GROUPS)
def test_generated_code_is_tidy(kind, tmp_path):
    """Authors start from code that their own linter will not complain about."""
    folder, _ = create(kind, "tidy", tmp_path, "Ada")
    ruff = [sys.executable, "-m", "ruff"]
    rules = ["--extend-select", "E,F,W,I,UP,B,C4,RUF", "--ignore", "RUF001,RUF002,RUF003"]
    for command in (["check"], ["check", *rules], ["format", "--diff"]):
        done = subprocess.run([*ruff, *command, "."], cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def test_generated_code_is_fully_typed(tmp_path):
    """By the settings that the packages themselves bring."""
    made = [create(kind, "typed", tmp_path, "Ada")[0] / f"benchflow_{kind}_typed" for kind in GROUPS]
    settings = tmp_path / "benchflow-agent-typed" / "pyproject.toml"
    cache = ["--cache-dir", str(tmp_path / "cache")]
    argv = [sys.executable, "-m", "mypy", "--config-file", str(settings), *cache, *map(str, made)]
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_next_commands_are_printed(tmp_path):
    done = bench("plugins", "new", "agent", "my-agent", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "Created benchflow-agent-my-agent (9 files).\n"
    for line in ("cd benchflow-agent-my-agent", "pip install -e '.[test]'", "bench plugins show my-agent", "pytest"):
        assert f"  {line}\n" in done.stderr


def test_result_as_json(tmp_path):
    done = bench("--json", "plugins", "new", "driver", "x1", "--dir", "sub/folder", cwd=tmp_path)
    data = json.loads(done.stdout)
    assert (tmp_path / data["folder"] / "pyproject.toml").is_file()
    assert "README.md" in data["files"]


@pytest.mark.parametrize("name", ["My-Agent", "my_agent", "-x", "x-", "a--b", "", "ü", "a b", "a/b", "..", "x" * 41])
def test_bad_names_are_refused(name, tmp_path):
    done = bench("plugins", "new", "agent", "--", name, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1 and "lower-case letters" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_unknown_kind_is_refused(tmp_path):
    done = bench("plugins", "new", "plugin", "x", cwd=tmp_path)
    assert done.returncode == 2
    assert "Unknown kind 'plugin'. One of: agent, sandbox," in done.stderr


def test_author_on_two_lines_is_refused(tmp_path):
    done = bench("plugins", "new", "agent", "x", "--author", "a\nb", cwd=tmp_path)
    assert done.returncode == 2 and list(tmp_path.iterdir()) == []


def test_nothing_is_overwritten(tmp_path):
    folder = tmp_path / "benchflow-agent-mine"
    folder.mkdir()
    (folder / "precious").write_text("x")
    done = bench("plugins", "new", "agent", "mine", cwd=tmp_path)
    assert done.returncode == 2 and "exists already" in done.stderr
    assert [p.name for p in folder.iterdir()] == ["precious"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_folder_that_cannot_be_written(tmp_path):
    tmp_path.chmod(0o500)
    done = bench("plugins", "new", "agent", "mine", cwd=tmp_path)
    assert done.returncode == 2 and "cannot be created" in done.stderr


def test_commands_in_the_readmes_exist():
    """Every `bench …` line of a README is understood by the command it names, up to its values."""
    from click.testing import CliRunner

    from benchflow_core.cli.main import cli

    for about in TEMPLATES.glob("*/about.md"):
        for line in re.findall(r"^bench (.+)$", about.read_text(), re.MULTILINE):
            words = line.split()
            path = words[: 2 if words[0] in ("eval", "tasks", "plugins") else 1]
            shown = CliRunner().invoke(cli, [*path, "--help"])
            assert shown.exit_code == 0, line
            for option in (w for w in words if w.startswith("-")):
                assert re.search(rf"(^|[\s,]){re.escape(option)}[\s,]", shown.output), f"{about.parent.name}: {line}"
