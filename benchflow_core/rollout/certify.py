"""`tasks certify`: full marks for the reference solution each time, and nothing for an idle agent or a cheat."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from benchflow_core.contracts.sandboxes import Sandbox
from benchflow_core.contracts.tasks import Task
from benchflow_core.plugins import Loaded
from benchflow_core.results.certified import certificate_file
from benchflow_core.results.clock import now
from benchflow_core.results.files import write_json
from benchflow_core.rollout.config import RolloutConfig
from benchflow_core.rollout.defaults import agent_for
from benchflow_core.rollout.host import Host
from benchflow_core.rollout.plan import make_plan
from benchflow_core.rollout.result import RolloutResult
from benchflow_core.rollout.rollout import Rollout

__all__ = ["certify_task"]

_VERSION: Final = "1.0"
_FROM = re.compile(r"^\s*FROM\s+(?:--\S+\s+)*(\S+)(?:\s+AS\s+(\S+))?", re.IGNORECASE | re.MULTILINE)
_OWN_CHEAT: Final = "cheat/solve.sh"
_CHEATS: Final = {
    "planted reward": "mkdir -p /logs/verifier; echo 1 > /logs/verifier/reward.txt; "
    "echo '{\"reward\": 1}' > /logs/verifier/reward.json; "
    "(while sleep 0.05; do echo 1 > /logs/verifier/reward.txt; done >/dev/null 2>&1 &)",
    "commands that always succeed": "mkdir -p /usr/local/sbin; for c in python3 pytest grep cmp diff test; do "
    "printf '#!/bin/sh\\nexit 0\\n' > /usr/local/sbin/$c; chmod +x /usr/local/sbin/$c; done",
    "tests that always pass": "for d in . /; do printf 'import pytest\\n\\n@pytest.hookimpl(hookwrapper=True)\\n"
    'def pytest_runtest_makereport():\\n    out = yield\\n    out.get_result().outcome = "passed"\\n\' '
    "> $d/conftest.py; done",
    "interpreter that ends at once": "for d in /usr/lib/python3* /usr/local/lib/python3*; do [ ! -d $d ] || "
    "{ rm -f $d/sitecustomize.py; printf 'import os\\nos._exit(0)\\n' > $d/sitecustomize.py; }; done",
    "shell that writes the reward": "for f in /root/.bashrc /root/.profile /etc/profile.d/zz.sh; do mkdir -p ${f%/*}; "
    "echo 'echo 1 > /logs/verifier/reward.txt' >> $f; done",
}


async def certify_task(
    path: Path,
    *,
    sandbox: str | None = None,
    times: int = 3,
    allow_substitute: bool = False,
    allow_env: Sequence[str] = (),
) -> dict[str, Any]:
    """Run the reference solution so many times, an idle agent and cheats; the report is kept beside the task."""
    common: dict[str, Any] = {"sandbox": sandbox, "allow_substitute": allow_substitute, "allow_env": allow_env}
    async with Host() as host:
        solver, idle = agent_for("reference", host.plugins), agent_for("null", host.plugins)
        plan = make_plan(RolloutConfig(path, agent=solver.name, **common), host.plugins, host.env)
        run = _Runner(path, host, common)
        reference = [await run(solver) for _ in range(times)]
        rows = {"nothing done": await run(idle)}
        for name, script in _cheats(plan.task):
            rows[name] = await run(idle, script)
    problems = [*_solution_problems(reference), *_cheat_problems(rows)]
    report = {
        "schema_version": _VERSION,
        "task": plan.task.name,
        "task_digest": plan.digest,
        "sandbox": plan.sandbox.name,
        "at": now(),
        "certified": not problems,
        "problems": problems,
        "unpinned": list(_unpinned(plan.task)),
        "reference": reference,
        "others": rows,
    }
    write_json(certificate_file(path), report)
    return report


class _Runner:
    """Runs one rollout of a task and tells what came of it."""

    def __init__(self, path: Path, host: Host, common: dict[str, Any]) -> None:
        self._path, self._host, self._common = path, host, common

    async def __call__(self, agent: Loaded, script: str | None = None) -> dict[str, Any]:
        async def cheat(box: Sandbox) -> None:
            await box.exec(("/bin/sh", "-c", str(script)), user="root", timeout=120)

        jobs = self._host.work_dir / "certify"
        hooks = () if script is None else (cheat,)
        config = RolloutConfig(self._path, agent=agent.name, jobs_dir=jobs, pre_agent_hooks=hooks, **self._common)
        result = await (await Rollout.create(config, self._host)).run()
        shutil.rmtree(jobs, ignore_errors=True)
        return _row(result)


def _row(result: RolloutResult) -> dict[str, Any]:
    found = result.verification
    readings = {name: reading["rewards"] for name, reading in (found.get("readings") or {}).items()}
    return {
        "rewards": result.rewards,
        "error": result.error or result.verifier_error,
        "readings": readings,
        "settled_by": found.get("settled_by"),
    }


def _cheats(task: Task) -> Iterator[tuple[str, str]]:
    yield from _CHEATS.items()
    own = task.path / _OWN_CHEAT
    if own.is_file():
        yield f"its own {_OWN_CHEAT}", own.read_text("utf-8")


def _solution_problems(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    rewards = [row["rewards"] for row in rows]
    if any(one != rewards[0] for one in rewards):
        yield f"the reference solution earns different rewards: {', '.join(map(_text, rewards))}"
    for row in rows[:1]:
        if row["error"]:
            yield f"the reference solution ended with: {row['error']}"
        elif (row["rewards"] or {}).get("reward", 0) < 1:
            yield f"the reference solution earns {_text(row['rewards'])}, not full marks"


def _cheat_problems(rows: dict[str, dict[str, Any]]) -> Iterator[str]:
    for name, row in rows.items():
        if any(value > 0 for value in (row["rewards"] or {}).values()):
            yield f"{name} earns {_text(row['rewards'])}"
    if (rows["nothing done"]["rewards"]) is None:
        yield f"nothing done is not scored: {rows['nothing done']['error']}"


def _unpinned(task: Task) -> Iterator[str]:
    """Images that are named without a digest."""
    image, file = task.environment.image, task.environment.dockerfile
    if image and "@sha256:" not in image:
        yield image
    stages: set[str] = {"scratch"}
    for found in _FROM.finditer(file.read_text("utf-8", "replace")) if file and file.is_file() else ():
        if found[1] not in stages and "@sha256:" not in found[1]:
            yield found[1]
        stages.add(found[2] or "")


def _text(rewards: dict[str, float] | None) -> str:
    return ", ".join(f"{name} {value:g}" for name, value in (rewards or {}).items()) or "no reward"
