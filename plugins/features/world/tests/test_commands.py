"""From the command line: a kept world is verified again and branched; what is wrong is one line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from .conftest import GET

STEP = f"""
if {GET} http://localhost:9700/all | grep -q first; then {GET} 'http://localhost:9700/set?answer=42'
else {GET} 'http://localhost:9700/set?first=1'; rm /usr/bin/cmp; echo : >/usr/bin/cmp; fi
"""


@pytest.fixture
def bench(tmp_path):
    (tmp_path / "home").mkdir()
    env = {**os.environ, "HOME": str(tmp_path / "home"), "BENCHFLOW_CACHE": str(tmp_path / "cache"), "NO_COLOR": "1"}

    def run(*args):
        argv = [sys.executable, "-m", "benchflow_core.cli.main", *map(str, args)]
        done = subprocess.run(argv, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=200, check=False)
        return SimpleNamespace(code=done.returncode, out=done.stdout, err=done.stderr)

    return run


def test_a_kept_world_is_verified_again_and_branched(task, bench, tmp_path):
    done = bench("eval", "create", "-t", task(STEP), "-a", "oracle", "--sandbox", "local", "--keep-state", "all")
    assert done.code == 0, done.err
    (folder,) = {path.parent for path in (tmp_path / "jobs").glob("*/*/result.json")}
    assert json.loads((folder / "result.json").read_text())["rewards"] == {"reward": 0.0}
    done = bench("eval", "branch", folder, "-n", "2", "-c", "2", "--json")
    assert done.code == 0, (done.out, done.err)
    found = json.loads(done.out)
    assert found["value"] == 1.0 and [c["rewards"] for c in found["children"]] == [{"reward": 1.0}] * 2
    assert json.loads((folder / "branch.json").read_text()) == found
    read = json.loads((folder / "branches" / "1" / "result.json").read_text())["verification"]["readings"]
    assert "clean" in read, "a program was changed against the image, though not against the kept state"
    done = bench("eval", "score", folder)
    assert done.code == 0, (done.out, done.err)
    assert json.loads((folder / "result.json").read_text())["rewards"] == {"reward": 0.0}, (
        "the parent's state is its own"
    )
    said = (folder / "verdicts" / "2" / "verifier" / "test-stdout.txt").read_text()
    assert json.loads(said.splitlines()[0]) == {"first": "1"}, "the world was laid into the verifier's box again"


def test_what_is_wrong_is_one_line(task, bench, tmp_path):
    folder = task(manifest=None)
    (tmp_path / "broken.toml").write_text("[environment]\nname = 'x'\nimage = 'i'\nisolatoin = 'persistent'\n")
    for args, said in (
        (("--environment-manifest", "broken.toml"), "line 4: unknown field 'isolatoin', did you mean 'isolation'?"),
        (("--environment-manifest", "nosuch"), "there is no environment 'nosuch'"),
        (("--service", "nosuch"), "there is no service 'nosuch'"),
        (("--service", "gmail", "--service", "slack:9001"), "both want port 9001"),
    ):
        done = bench("eval", "create", "-t", folder, "-a", "oracle", "--sandbox", "local", *args)
        assert done.code != 0 and said in done.err and "Traceback" not in done.err, done.err
    assert not (tmp_path / "jobs").exists() or not list((tmp_path / "jobs").glob("*/*/result.json"))
    done = bench("eval", "branch", folder, "-n", "2")
    assert done.code == 1 and "no state was kept" in done.err
    done = bench("environment", "check", "broken.toml")
    assert done.code == 1 and "isolatoin" in done.out


def test_a_registry_is_listed_with_what_is_broken_in_it(bench, tmp_path):
    folder = tmp_path / "home" / ".config" / "benchflow" / "environments"
    folder.mkdir(parents=True)
    (folder / "good@1.toml").write_text("[environment]\nname = 'good'\nimage = 'i'\n")
    (folder / "bad@1.toml").write_text("[environment]\nname = 'bad'\n")
    listed = json.loads(bench("environment", "list", "--json").out)
    rows = {row["name"]: row["summary"] for row in listed["environments"]}
    assert rows["good@1"] == "i: starts its own services" and rows["bad@1"].startswith("broken: ")
    assert {"gmail", "gcal", "slack", "gdoc", "gdrive"} <= {row["name"] for row in listed["services"]}
    shown = json.loads(bench("environment", "show", "good", "--json").out)
    assert shown["version"] == "1" and shown["env_hash"].startswith("sha256:")
