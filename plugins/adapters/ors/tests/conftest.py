"""Real servers of both packages on loopback, in an environment of their own (`scripts/openreward_env.sh`)."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
PINS = hashlib.sha256((HERE / "requirements.txt").read_bytes()).hexdigest()[:12]
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
HOME = Path(os.environ.get("BENCHFLOW_OPENREWARD_HOME") or CACHE / "benchflow/openreward" / PINS)
PYTHON = HOME / "bin/python"


@dataclass
class Served:
    """A running server, and what its environments were asked."""

    dialect: str
    port: int
    log: Path
    process: subprocess.Popen[bytes] = field(repr=False)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def lines(self) -> list[str]:
        return self.log.read_text().splitlines() if self.log.exists() else []

    def sessions(self) -> tuple[int, int]:
        """Begun and ended."""
        first = [line.split()[0] for line in self.lines()]
        return first.count("setup"), first.count("teardown")


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


@contextlib.contextmanager
def serve(
    program: Path, *arguments: str, log: Path, env: Mapping[str, str] = {}, dialect: str = ""
) -> Iterator[Served]:
    if not (HOME / ".installed").exists():
        pytest.skip("needs both ORS packages: run scripts/openreward_env.sh")
    port = free_port()
    argv = [PYTHON, program, *arguments, str(port)]
    with log.with_suffix(".out").open("wb") as out:
        process = subprocess.Popen(argv, env={**os.environ, "SESSIONS": str(log), **env}, stdout=out, stderr=out)
    served = Served(dialect, port, log, process)
    try:
        for _ in range(1200):
            with contextlib.suppress(OSError), urllib.request.urlopen(f"{served.url}/health", timeout=5):
                break
            assert process.poll() is None, log.with_suffix(".out").read_text()
            time.sleep(0.1)
        yield served
    finally:
        process.terminate()
        process.wait(20)


@pytest.fixture(scope="module", params=["openreward", "ors"])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    log = tmp_path_factory.mktemp(request.param) / "sessions"
    with serve(HERE / "served.py", request.param, log=log, dialect=request.param) as served:
        yield served


@dataclass
class Ran:
    """A finished job."""

    code: int
    output: str
    results: list[dict[str, Any]]
    events: list[list[dict[str, Any]]]

    @property
    def rewards(self) -> list[float | None]:
        return [(result["rewards"] or {}).get("reward") for result in self.results]


@pytest.fixture
def bench(tmp_path: Path) -> Callable[..., Ran]:
    """`bench eval create` on the embedded sandbox; `script`: what the scripted agent plays."""

    def run(address: str, *more: str, agent: str = "scripted", script: str = "", env: Mapping[str, str] = {}) -> Ran:
        jobs = tmp_path / f"jobs-{time.monotonic_ns()}"
        argv = [str(Path(sys.executable).with_name("bench")), "eval", "create", "--source-env", address]
        argv += ["-a", agent, "--sandbox", "local", "--jobs-dir", str(jobs), "-c", "2", *more]
        if script:
            argv += ["--agent-option", f"script={script}"]
        done = subprocess.run(
            argv,
            env={**os.environ, "BENCHFLOW_CACHE": str(tmp_path / "cache"), "COLUMNS": "300", **env},
            capture_output=True,
            text=True,
        )
        folders = sorted(path.parent for path in jobs.glob("*/*/result.json"))
        results = [json.loads((folder / "result.json").read_text()) for folder in folders]
        events = [list(map(json.loads, (folder / "events.jsonl").read_text().splitlines())) for folder in folders]
        return Ran(done.returncode, done.stdout + done.stderr, results, events)

    return run


@pytest.fixture
def original() -> Callable[[Served], dict[str, Any]]:
    """The same play through the package's own client."""

    def run(served: Served) -> dict[str, Any]:
        argv = [PYTHON, HERE / "original.py", served.dialect, served.url]
        done = subprocess.run(argv, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return found

    return run


@pytest.fixture
def serving() -> Any:
    """`with serving(program, *arguments, log=…, env=…) as server`, on a free port that is the program's last argument."""
    serve.python = PYTHON  # type: ignore[attr-defined]
    return serve
