"""Whole rollouts as a user runs them, with agents that talk ACP in a cloud's box."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchflow_testing_clouds.cases.wire import CloudCase
from benchflow_testing_clouds.control import Remote

__all__ = ["CloudRollouts"]

Bench = Callable[..., subprocess.CompletedProcess[str]]
_KEY = "sk-provider-key-that-must-stay-outside"
_SOLVE = 'echo "Hello, $(cat /app/name.txt)!" > /app/hello.txt'
_SEARCH = (
    "cat /proc/*/environ 2>/dev/null | tr '\\0' '\\n'; "
    "grep -rqs 'that-must-sta[y]-outside' /proc/*/environ /proc/*/cmdline /root /home /tmp /app /etc /run "
    "&& echo LEA''KED"
)
_LEFT = """
import asyncio, os, pathlib
from importlib import import_module
from benchflow_core.contracts import ImageRequest, SandboxContext, StartRequest
async def main():
    here = pathlib.Path(os.environ["HERE"])
    context = SandboxContext(work_dir=here, cache_dir=pathlib.Path(os.environ["CACHE"]), labels={"job": "killed"})
    provider = import_module(os.environ["PACKAGE"] + ".plugin").benchflow_sandbox().open(context)
    image = await provider.prepare(ImageRequest(image="debian:bookworm-slim"))
    await provider.start(image, StartRequest(name="left"))
    os._exit(0)
asyncio.run(main())
"""


class CloudRollouts(CloudCase):
    tasks: Path
    """A folder with the example tasks."""

    @pytest.fixture
    def bench(self, tmp_path: Path, cloud_cache: Path) -> Bench:
        def run(*args: str, code: int = 0, **env: str) -> subprocess.CompletedProcess[str]:
            given = {**os.environ, "BENCHFLOW_CACHE": str(cloud_cache / "bench"), "NO_COLOR": "1", **env}
            argv = [sys.executable, "-m", "benchflow_core.cli.main", *args]
            done = subprocess.run(
                argv, cwd=tmp_path, env=given, capture_output=True, text=True, timeout=290, check=False
            )
            assert done.returncode == code, (done.stdout, done.stderr)
            return done

        return run

    def _create(self, task: Path, agent: str) -> list[str]:
        return ["eval", "create", "-t", str(task), "-a", agent, "--sandbox", self.wire.name]

    def test_the_reference_solution_is_verified_in_its_own_box(
        self, bench: Bench, cloud: Remote, tmp_path: Path
    ) -> None:
        command = self._create(self.tasks / "hello-file", "oracle")
        bench(*command)
        cloud.reset()
        done = bench(*command)
        assert "verifier isolation fresh" in done.stderr and "reward 1" in done.stdout + done.stderr
        # The agent's, the verifier's, and one of the image alone: the solution's script is a program that was added,
        # and its name is compared with the image's once per image and process.
        requests, boxes = cloud.requests, 3
        assert requests.pop(self.wire.chatter, 0) < 100
        wanted = Counter({name: boxes * count for name, count in self.wire.box.items()})
        assert requests == wanted + Counter(self.wire.job)
        assert cloud.boxes == []
        text = _written(tmp_path) + done.stdout + done.stderr
        assert [name for name in self.wire.secrets if os.environ[name] in text] == [], "a secret is in an artifact"

    def test_an_agent_talks_over_the_stream_although_it_breaks(self, bench: Bench, cloud: Remote) -> None:
        task = self.tasks / "fix-the-script"
        cloud.fault(self.wire.output, after_bytes=20_000, skip=1)
        script = f"script={task / 'scripted' / 'solve.yaml'}"
        done = bench("--json", *self._create(task, "scripted"), "--agent-option", script)
        assert json.loads(done.stdout)["scored"] == 1, done.stdout
        assert cloud.boxes == []

    @pytest.mark.agents
    def test_a_real_agent_is_scored_and_its_key_stays_outside(
        self, bench: Bench, cloud: Remote, tmp_path: Path, local_model: Any
    ) -> None:
        """pi, installed into the image, writes the file that the local model tells it to."""
        task = shutil.copytree(self.tasks / "hello-file", tmp_path / "task")
        (task / "instruction.md").write_text("[[fake:solve]]")
        tools = [{"do": "bash", "command": f"{_SOLVE}; {_SEARCH}"}]
        local_model.script("solve", [{"text": "I do it.", "tools": tools}, {"text": "Done."}])
        done = bench(
            "--json", *self._create(task, "pi"), "-m", "openai/local-model", "--usage-tracking", "required",
            OPENAI_BASE_URL=f"{local_model.base_url}/v1", OPENAI_API_KEY=_KEY,
        )  # fmt: skip
        found = json.loads(done.stdout)
        assert (found["scored"], found["score"]) == (1, "100.0%"), done.stdout
        log = next((tmp_path / "jobs").rglob("llm_trajectory.jsonl")).read_text()
        assert "fake:solve" in log and "PATH=" in log, "the gateway saw what the command printed"
        text = _written(tmp_path / "jobs") + done.stdout + done.stderr
        assert _KEY not in text and "LEAKED" not in text
        assert cloud.boxes == []

    def test_without_a_key_nothing_starts(self, bench: Bench, cloud: Remote) -> None:
        cloud.reset()
        done = bench(*self._create(self.tasks / "hello-file", "oracle"), code=1, **dict.fromkeys(self.wire.secrets, ""))
        assert f"{self.wire.secrets[0]} " in done.stderr and "not set" in done.stderr and cloud.requests == {}

    def test_the_doctor_finds_credentials_in_the_vendors_own_file(self, bench: Bench, tmp_path: Path) -> None:
        path, content = self.wire.login
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(content(os.environ))
        unset = dict.fromkeys(self.wire.secrets, "")
        command = ["plugins", "doctor", self.wire.name, "--json", "--timeout", "60"]
        found = json.loads(bench(*command, HOME=str(tmp_path), **unset).stdout)
        rows = [(check["name"], check["status"], check["detail"]) for one in found for check in one["checks"]]
        assert {status for _, status, _ in rows} == {"ok"}
        told = [detail for name, _, detail in rows if name == "variable"]
        assert told == [f"{name} is not set; it was found elsewhere." for name in self.wire.secrets]

    def test_a_wrong_option_is_told_once_before_anything_starts(
        self, bench: Bench, cloud: Remote, tmp_path: Path
    ) -> None:
        cloud.reset()
        command = self._create(self.tasks, "oracle")
        done = bench(*command, "--trials", "3", "--sandbox-option", "create_tries=often", code=1)
        assert done.stderr.count("create_tries=often: not a whole number from 1") == 1
        assert cloud.requests == {} and not (tmp_path / "jobs").exists() and "Traceback" not in done.stderr

    def test_boxes_of_a_killed_run_are_listed_and_cleaned_up(
        self, bench: Bench, cloud: Remote, tmp_path: Path, cloud_cache: Path
    ) -> None:
        env = {"HERE": str(tmp_path), "CACHE": str(cloud_cache), "PACKAGE": self.wire.package}
        subprocess.run([sys.executable, "-c", _LEFT], env={**os.environ, **env}, check=True, timeout=120)
        left = cloud.boxes
        assert len(left) == 1
        shown = bench("sandbox", "list", "--boxes", "--json").stdout
        assert left[0] in shown and "killed" in shown
        refused = bench("sandbox", "list", "--boxes", "--json", code=1, **{self.wire.secrets[-1]: "wrong-secret"})
        assert json.loads(refused.stdout) is not None and "wrong-secret" not in refused.stderr
        assert self.wire.secrets[-1] in refused.stderr and "Traceback" not in refused.stderr
        assert left[0] in bench("sandbox", "cleanup", "--sandbox", self.wire.name, "--dry-run").stdout
        assert cloud.boxes == left
        bench("sandbox", "cleanup", "--sandbox", self.wire.name)
        assert cloud.boxes == []


def _written(folder: Path) -> str:
    return "".join(path.read_text(errors="replace") for path in folder.rglob("*") if path.is_file())
