"""Real environments of both generations, played by the real command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from benchflow_adapter_verifiers.environment import VerifiersEnvironment

TASKSETS = Path(__file__).with_name("tasksets")


@dataclass
class Played:
    """A job: the command's exit code and words, and each rollout's result by the number of its task."""

    code: int
    said: str
    results: dict[int, dict[str, Any]]


@pytest.fixture(scope="session")
def installed() -> None:
    """Tests never install the environments: that is 800 MB."""
    if not all(
        (VerifiersEnvironment(generation).home / ".benchflow-installed").exists() for generation in ("0.4", "0.3")
    ):
        pytest.skip("needs the environments of Verifiers: run scripts/verifiers_env.sh")


@pytest.fixture
def bench(tmp_path: Path) -> Callable[..., Played]:
    """`bench eval create --source-env primeintellect/…` with the scripted agent in the embedded sandbox."""

    def run(address: str, *turns: str, args: tuple[str, ...] = ()) -> Played:
        script = "{turns: [" + ", ".join(turns or ["[]"]) + "]}"
        words = [sys.executable, "-m", "benchflow_core.cli.main", "eval", "create", "--jobs-dir", "jobs"]
        words += ["--source-env", address, "--sandbox", "local", *(args or ("-a", "scripted"))]
        words += [] if args else ["--agent-option", f"script={script}"]
        home = os.environ.get("BENCHFLOW_VERIFIERS_HOME") or str(VerifiersEnvironment("0.4").home.parent)
        env = {**os.environ, "BENCHFLOW_CACHE": str(tmp_path / "cache"), "BENCHFLOW_VERIFIERS_HOME": home}
        done = subprocess.run(words, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=900, check=False)
        results = {}
        for file in tmp_path.glob("jobs/*/*/result.json"):
            result = json.loads(file.read_text())
            results[int(result["task_name"][-5:])] = {**result, "dir": file.parent}
        return Played(done.returncode, done.stdout + done.stderr, results)

    return run
