"""Files on their way into or out of a box belong to a process: when it was killed, somebody else removes them."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchflow_core.contracts import Lease
from benchflow_core.rollout import Host
from benchflow_core.rollout.leases import _dead

ROOT = Path(__file__).parents[2]
HOLDER = """
import sys, time
from benchflow_core.contracts import private_folder
with private_folder() as folder:
    (folder / "secret").write_text("sk-a-login-that-must-not-stay")
    print(folder, flush=True)
    sys.stdin.read()
"""


class Holder:
    """A process that is in the middle of an upload."""

    def __init__(self, env: dict[str, str]) -> None:
        pipe = subprocess.PIPE
        self.process = subprocess.Popen([sys.executable, "-c", HOLDER], env=env, stdin=pipe, stdout=pipe, text=True)
        assert self.process.stdout is not None
        self.folder = Path(self.process.stdout.readline().strip())

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "tmp").mkdir()
    return {**os.environ, "TMPDIR": str(tmp_path / "tmp"), "BENCHFLOW_CACHE": str(tmp_path / "cache")}


@pytest.fixture
def killed(env: dict[str, str]) -> Path:
    holder = Holder(env)
    assert holder.folder.stat().st_mode & 0o777 == 0o700
    holder.kill()
    assert (holder.folder / "secret").exists()
    return holder.folder


@pytest.fixture
def living(env: dict[str, str]) -> Iterator[Path]:
    holder = Holder(env)
    yield holder.folder
    holder.process.communicate("")
    assert not holder.folder.exists()


def test_cleanup_removes_what_a_killed_process_left(env: dict[str, str], killed: Path, living: Path) -> None:
    other = Path(env["TMPDIR"], "benchflow-of-somebody-else")
    other.mkdir()

    def cleanup(*options: str) -> list[str]:
        done = subprocess.run(
            [sys.executable, "-m", "benchflow_core.cli.main", "--json", "cleanup", "--sandbox", "local", *options],
            env=env,
            capture_output=True,
            text=True,
            check=True,
        )
        return [row["id"] for row in json.loads(done.stdout)]

    assert cleanup("--dry-run") == [str(killed)] and killed.exists()
    assert cleanup() == [str(killed)] and not killed.exists()
    assert living.exists() and other.exists()


async def test_the_next_job_removes_it_too(
    env: dict[str, str], killed: Path, living: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", env["TMPDIR"])
    async with Host(env=env) as host:
        host.sweep()
    assert not killed.exists() and living.exists()


def test_no_temporary_folder_is_without_an_owner() -> None:
    """Beside a target (`dir=`) it is found by its place; anywhere else by the process in its name."""
    made = re.compile(r"\b(?:TemporaryDirectory|NamedTemporaryFile|mkdtemp|mkstemp)\((?![^)]*dir=)")
    sources = [*ROOT.glob("benchflow_core/**/*.py"), *ROOT.glob("plugins/*/*/benchflow_*/**/*.py")]
    found = [
        str(path.relative_to(ROOT))
        for path in sources
        if not {"templates", "testing"} & set(path.relative_to(ROOT).parts) and made.search(path.read_text("utf-8"))
    ]
    assert found == ["benchflow_core/contracts/common.py"]


@pytest.mark.parametrize(
    ("owner_alive", "term", "removed"),
    [(True, -1, False), (False, 60, True), (None, 60, False), (None, -1, True), (None, None, False)],
)
def test_whose_owner_cannot_be_asked_is_removed_when_its_term_is_over(owner_alive, term, removed) -> None:
    expires = None if term is None else time.time() + term
    lease = Lease("x", "box", {}, created_at=0.0, expires_at=expires, owner_alive=owner_alive)
    assert _dead(lease) is removed
