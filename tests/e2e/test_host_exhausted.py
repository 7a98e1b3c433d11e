"""The host runs out of disk or of file descriptors: nobody's mistake, unscored, and it says what to do."""

from __future__ import annotations

import json
import os
import shutil
import subprocess

import pytest

FILL = 'head -c 2000000 /dev/zero > /tmp/big || true; sleep 2; echo "Hello, $(cat /app/name.txt)!" > /app/hello.txt'


@pytest.fixture
def run(env, command, tmp_path, examples, name):
    """A job of four rollouts in a shell that first limits what the host has; its results."""
    (tmp_path / "home").mkdir()
    cache = tmp_path / "small-cache"
    cache.mkdir()

    def run_(before: str, *args: str):
        script = json.dumps([{"run": FILL}])
        argv = [*command, "eval", "create", "-t", str(examples / "hello-file"), "-a", name("scripted")]
        argv += ["--sandbox", name("local"), "--agent-option", f"script={script}", "--max-retries", "0", *args]
        shell = ["sh", "-c", f'{before}; exec "$@"', "sh", *argv]
        own = {**env, "BENCHFLOW_CACHE": str(cache)}
        done = subprocess.run(
            [*(["unshare", "-m"] if "mount" in before else []), *shell],
            cwd=tmp_path, env=own, capture_output=True, text=True, timeout=280, check=False,
        )  # fmt: skip
        results = [json.loads(p.read_text()) for p in tmp_path.glob("jobs/*/*/result.json")]
        return done, results

    return run_, cache


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("unshare"), reason="mounting a small disk takes root")
def test_a_full_disk_of_the_host_is_no_zero(run):
    start, cache = run
    done, results = start(f"mount -t tmpfs -o size=3m none {cache}", "--trials", "4", "-c", "4")
    assert results, done.stderr
    assert not [r for r in results if r["rewards"] is not None and r["rewards"]["reward"] == 0], done.out
    errors = [r["error_info"] for r in results if r["rewards"] is None]
    assert errors and {error["kind"] for error in errors} == {"infrastructure"}, errors
    assert [error["message"] for error in errors if not error["remedy"]] == []
    assert done.returncode == 1


def test_a_host_without_file_descriptors_blames_nobody(run):
    start, _ = run
    done, results = start("ulimit -n 64", "--trials", "30", "-c", "30")
    kinds = {(r["error_info"] or {}).get("kind") for r in results}
    assert kinds <= {None, "infrastructure"}, (kinds, [r["error"] for r in results][:3])
    if not results:
        assert "open files" in done.stderr and "Traceback" not in done.stderr, done.stderr
