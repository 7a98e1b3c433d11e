"""ProgramBench's converter and its parity test, by their documented commands, on the small clone beside them."""

from __future__ import annotations

import json
import os
import runpy
import shutil
import subprocess
import sys
import tarfile
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

ROOT = Path(__file__).parents[2]
HERE = ROOT / "benchmarks/programbench"
CLONE = HERE / "fixture"
TALLY, ROT = "oaks__tally.0a1b2c3", "oaks__rot.4d5e6f7"


def run(*argv: str | Path, cwd: Path = ROOT, **env: str) -> subprocess.CompletedProcess[str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("BENCHFLOW_", "PYTEST_", "PROGRAMBENCH_"))}
    command = [sys.executable, "-m", *map(str, argv)]
    return subprocess.run(
        command, cwd=cwd, env={**kept, "NO_COLOR": "1", **env}, capture_output=True, text=True, check=False
    )


def convert(output: Path, *more: str | Path, clone: Path = CLONE) -> subprocess.CompletedProcess[str]:
    return run("benchmarks.programbench.main", "--programbench-dir", clone, "--output-dir", output, *more)


def parity(work: Path, *jobs: str, clone: Path = CLONE) -> subprocess.CompletedProcess[str]:
    folders = [work / "jobs" / job for job in jobs]
    return run(
        "benchmarks.programbench.parity_test",
        *("--programbench-dir", clone, "--tasks-dir", work / "tasks", "--output", work / "parity.json"),
        *("--jobs-dir", *folders),
    )


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The folder, where ProgramBench's archives would be."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(SimpleHTTPRequestHandler, directory=str(folder)))
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def fetch(tests: Path, logs: Path, address: str) -> bytes | int:
    """The first archive as a task's own scorer fetches it; where it cannot, what the scorer ends with."""
    score = runpy.run_path(str(tests / "score.py"))
    logs.mkdir(exist_ok=True)
    score["main"].__globals__.update(ARCHIVES=address, LOGS=logs)
    spec = json.loads((tests / "spec.json").read_text())
    try:
        return score["archive"](spec, next(iter(spec["branches"])), logs.parent).read_bytes()
    except OSError:
        return score["main"]()


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tasks, converted, and what the original, an idle agent and one that knows half of it earn."""
    work = tmp_path_factory.mktemp("programbench")
    done = convert(work / "tasks", "--sources", CLONE / "sources")
    assert done.returncode == 0 and "2 written" in done.stdout, done.stderr
    half = ("-a", "scripted", "--agent-option", f"script={CLONE / 'scripted/partly.yaml'}", "--include", TALLY)
    for job, who in {"oracle": ("-a", "oracle"), "nop": ("-a", "nop"), "partly": half}.items():
        where = ("--tasks-dir", "tasks", "-e", "local", "--allow-substitute", "--job-name", job)
        own = {"HOME": str(work / "home"), "BENCHFLOW_CACHE": str(work / "cache")}
        ran = run("benchflow_core.cli.main", "eval", "create", *where, *who, cwd=work, **own)
        assert ran.returncode == 0, ran.stderr
    return work


def rewards(work: Path, job: str) -> dict[str, float]:
    results = [json.loads(file.read_text()) for file in (work / "jobs" / job).glob("*/result.json")]
    return {result["task_name"]: result["rewards"]["reward"] for result in results}


def test_the_original_earns_all_and_nothing_earns_nothing(played: Path) -> None:
    assert rewards(played, "oracle") == {TALLY: 1.0, ROT: 1.0}
    assert rewards(played, "nop") == {TALLY: 0.0, ROT: 0.0}
    assert rewards(played, "partly") == {TALLY: pytest.approx(0.6)}, (
        "three of five; ignored ones and copies do not count"
    )


def test_what_is_written_are_tasks(played: Path) -> None:
    checked = run("benchflow_core.cli.main", "tasks", "check", played / "tasks")
    assert checked.returncode == 0 and checked.stdout.count(": ok\n") == 2, checked.stdout
    config = tomllib.loads((played / "tasks" / TALLY / "task.toml").read_text())
    box = config["environment"]
    assert box["docker_image"] == "programbench/oaks_1776_tally.0a1b2c3:task_cleanroom_v6"
    assert box["network_mode"] == "no-network" and config["metadata"]["tests"] == 5
    told = (played / "tasks" / TALLY / "instruction.md").read_text()
    assert "tally" not in told and "oaks" not in told, "the agent is not told what it rebuilds"
    assert "d4d4d4d4d4d4" not in (played / "tasks" / ROT / "tests/spec.json").read_text(), "an ignored branch"


def test_parity(played: Path, tmp_path: Path) -> None:
    agreed = parity(played, "oracle", "nop", "partly")
    assert agreed.returncode == 0 and "parity-confirmed: 5 rollouts" in agreed.stdout, agreed.stderr
    record = json.loads((played / "parity.json").read_text())
    assert record["verdict"] == "parity-confirmed" and record["tolerance"] == 0.02
    alike = parity(played, "nop")
    assert alike.returncode == 3 and "insufficient-evidence: 2 rollouts" in alike.stdout, alike.stderr
    other = tmp_path / "other"
    shutil.copytree(CLONE, other)
    scorer = other / "src/programbench/eval/eval.py"
    scorer.write_text(scorer.read_text().replace("not in ignored", "!= ignored"))
    apart = parity(played, "oracle", "nop", clone=other)
    assert apart.returncode == 1 and "parity-divergent: 4 rollouts, at most 0.1667 apart" in apart.stdout, apart.stderr
    scorer.unlink()
    gone = parity(played, "oracle", clone=other)
    assert gone.returncode == 2 and "error: ProgramBench's scorer" in gone.stderr and "Traceback" not in gone.stderr


def test_what_is_there_is_kept_unless_replaced(tmp_path: Path) -> None:
    assert "1 written" in convert(tmp_path, "--task-ids", ROT).stdout
    told = tmp_path / ROT / "instruction.md"
    before = {path.name: path.read_bytes() for path in (tmp_path / ROT).rglob("*.tar.gz")}
    told.write_text("mine")
    assert "1 written" in (second := convert(tmp_path)).stdout and "1 kept" in second.stdout
    assert told.read_text() == "mine"
    assert "2 written" in convert(tmp_path, "--replace").stdout and told.read_text() != "mine"
    assert {path.name: path.read_bytes() for path in (tmp_path / ROT).rglob("*.tar.gz")} == before
    assert sorted(path.name for path in tmp_path.iterdir()) == [ROT, TALLY], "no scratch is left"


def test_tests_that_are_not_at_hand_are_fetched_when_scoring(tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    shutil.copytree(CLONE, clone)
    inside = clone / "src/programbench/data/tasks" / ROT / "tests"
    packed = tmp_path / "blobs" / ROT / "tests/c3c3c3c3c3c3.tar.gz"
    packed.parent.mkdir(parents=True)
    with tarfile.open(packed, "w:gz") as tar:
        tar.add(inside / "c3c3c3c3c3c3", ".")
    shutil.rmtree(inside)
    assert convert(tmp_path / "a", "--task-ids", ROT, clone=clone).returncode == 0
    config = tomllib.loads((tmp_path / "a" / ROT / "task.toml").read_text())
    assert (config["agent"]["network_mode"], config["environment"]["network_mode"]) == ("no-network", "public")
    assert convert(tmp_path / "b", "--task-ids", ROT, "--blobs", tmp_path / "blobs", clone=clone).returncode == 0
    assert (tmp_path / "b" / ROT / "tests/blobs" / packed.name).read_bytes() == packed.read_bytes()
    with served(tmp_path / "blobs") as address:
        assert fetch(tmp_path / "a" / ROT / "tests", tmp_path / "logs", address) == packed.read_bytes()
    missed = fetch(tmp_path / "a" / ROT / "tests", tmp_path / "logs", address)
    assert missed == 1 and not list((tmp_path / "logs").iterdir()), "no reward, not even 0"
    packed.unlink()
    lacking = convert(tmp_path / "c", "--task-ids", ROT, "--blobs", tmp_path / "blobs", clone=clone)
    assert lacking.returncode == 1 and f"no {packed}" in lacking.stderr and not list((tmp_path / "c").iterdir())


def test_bad_input_is_one_line(tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    shutil.copytree(CLONE, broken)
    (broken / "src/programbench/data/tasks" / ROT / "task.yaml").write_text("repository: oaks/rot\n")
    (tmp_path / "file").write_text("")
    cases = {
        "no folder": convert(tmp_path / "out", clone=tmp_path / "nowhere"),
        "is not a clone of ProgramBench": convert(tmp_path / "out", clone=ROOT / "examples"),
        f"did you mean '{TALLY}'?": convert(tmp_path / "out", "--task-ids", "oaks__taly.0a1b2c3"),
        "cannot write below": convert(tmp_path / "file" / "tasks"),
        "task.yaml: no 'commit'": convert(tmp_path / "out", clone=broken),
        "check out oaks/rot at 4d5e": convert(tmp_path / "out", "--sources", tmp_path),
    }  # fmt: skip
    for said, done in cases.items():
        assert done.returncode == 1 and said in done.stderr, (said, done.stderr)
        assert done.stderr.startswith("error: ") and len(done.stderr.splitlines()) == 1, done.stderr
