"""Worlds on the embedded sandbox, with a small service of one SQLite file that the task's image holds."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from benchflow_claw_kit.testing import seed_databases

from benchflow_core.rollout import Rollout, RolloutConfig
from benchflow_core.rollout.host import Host

KVD = Path(__file__).parent / "data" / "kvd"
DOCKERFILE = "FROM python:3.12-slim\nCOPY kvd /usr/local/bin/kvd\nRUN chmod 755 /usr/local/bin/kvd\nWORKDIR /app\n"
TASK = 'version = "1.0"\n[metadata.benchflow]\nallow_substitute = true\n[verifier]\ntimeout_sec = 60\n'
MANIFEST = """[environment]
name = "kv"
base_image = "python:3.12-slim"
owns_lifecycle = false
{more}
[environment.task_selection]
mechanism = "image"
[environment.readiness]
timeout_sec = 20
{ready}
[[environment.services]]
name = "kv"
command = "kvd --db /data/kv.db --port 9700"
port = 9700
"""
GET = 'python3 -c "import sys,urllib.request as u; print(u.urlopen(sys.argv[1], timeout=10).read().decode())"'
"""A command line that fetches an address, where no curl is."""
CHECK = """#!/bin/sh
python3 - <<'PY'
import json, sqlite3
pairs = dict(sqlite3.connect("/data/kv.db").execute("select name, value from pairs"))
print(json.dumps(pairs, sort_keys=True))
open("/logs/verifier/reward.txt", "w").write(str(float(pairs.get("answer") == "42")))
PY
"""


@pytest.fixture(scope="session")
def claws_base() -> None:
    """The claws' base image in the local engine, or its stand-in."""
    script = Path(__file__).parents[4] / "scripts" / "base_images.py"
    subprocess.run([sys.executable, script, "benchflow/claws-base"], check=True)


@pytest.fixture
def claws_task() -> Callable[[Path], Path]:
    """The ClawsBench task of the public documents, with the databases that they say are there."""
    root = Path(__file__).parents[4]

    def make(folder: Path) -> Path:
        shutil.copytree(root / "tests" / "data" / "schedule-meeting-from-email", folder)
        scenarios = root / "benchmarks" / "clawsbench" / "tasks" / "meeting-from-email" / "environment"
        seed_databases(folder / "environment", scenarios)
        return folder

    return make


@pytest.fixture
def task(tmp_path: Path) -> Callable[..., Path]:
    """A task with a world: `solution` and `tests` are shell scripts."""

    def make(
        solution: str = "true", tests: str = CHECK, *, manifest: str | None = "", ready: str = "", **files: str
    ) -> Path:
        root = tmp_path / "tasks" / f"t{len(list((tmp_path / 'tasks').glob('*')))}"
        texts = {
            "environment/Dockerfile": DOCKERFILE,
            "task.toml": TASK,
            "instruction.md": "Set answer to 42.",
            "tests/test.sh": tests,
            "solution/solve.sh": f"#!/bin/sh\n{solution}\n",
            **{name.replace("__", "/"): text for name, text in files.items()},
        }
        if manifest is not None:
            texts["environment/environment.toml"] = MANIFEST.format(more=manifest, ready=ready)
        for name, text in texts.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        shutil.copy(KVD, root / "environment" / "kvd")
        return root

    return make


@pytest.fixture
async def host() -> AsyncIterator[Host]:
    async with Host() as opened:
        yield opened


@pytest.fixture
def rollout(tmp_path: Path, host: Host) -> Callable[..., Any]:
    async def make(task: Path, agent: str = "oracle", **settings: Any) -> Rollout:
        settings = {"sandbox": "local", "jobs_dir": tmp_path / "jobs", "job_name": "j", **settings}
        return await Rollout.create(RolloutConfig(task_path=task, agent=agent, **settings), host)

    return make


@pytest.fixture
def run(rollout: Callable[..., Any]) -> Callable[..., Any]:
    """To the end."""

    async def whole(task: Path, agent: str = "oracle", **settings: Any) -> Any:
        made = await rollout(task, agent, **settings)
        result = await made.run()
        return result

    return whole
