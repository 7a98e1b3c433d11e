"""Run a task's reference solution, an agent that does nothing, and cheats, and say what each of them earns."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from benchflow_core.contracts import Sandbox, Task
from benchflow_core.contracts.core import Core, RolloutHost, RolloutOutcome

__all__ = ["certify_task", "live_check"]

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
    core: Core,
    path: Path,
    *,
    sandbox: str | None = None,
    times: int = 3,
    allow_substitute: bool = False,
    allow_env: Sequence[str] = (),
) -> dict[str, Any]:
    """Run the reference solution so many times, an idle agent and cheats; the report is kept beside the task."""
    common = {"sandbox": sandbox, "allow_substitute": allow_substitute, "allow_env": allow_env}
    solver, idle = core.agent_for("reference"), core.agent_for("null")
    async with core.host() as host:
        plan = (await host.rollout(path, agent=solver, **common)).plan
        run = _Runner(path, host, common)
        reference = [_row(await run(solver)) for _ in range(times)]
        rows = {"nothing done": _row(await run(idle))}
        for name, script in _cheats(plan.task):
            rows[name] = _row(await run(idle, script))
    problems = [*_solution_problems(reference), *_cheat_problems(rows)]
    report = {
        "schema_version": _VERSION,
        "task": plan.task.name,
        "task_digest": plan.digest,
        "sandbox": plan.sandbox.name,
        "at": datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "certified": not problems,
        "problems": problems,
        "unpinned": list(_unpinned(plan.task)),
        "reference": reference,
        "others": rows,
    }
    core.keep_certificate(path, report)
    return report


async def live_check(
    core: Core,
    path: Path,
    *,
    sandbox: str | None = None,
    allow_substitute: bool = False,
    allow_env: Sequence[str] = (),
) -> dict[str, Any]:
    """Return what each policy says of the reference solution and of doing nothing, and the strongest that works.

    Kept by the task's digest: a certified task's failing verifier counts against the agent, not as lost coverage.
    """
    common = {"sandbox": sandbox, "allow_substitute": allow_substitute, "allow_env": allow_env}
    agents = {"reference": core.agent_for("reference"), "null": core.agent_for("null")}
    async with core.host() as host:
        plan = (await host.rollout(path, agent=agents["reference"], **common)).plan
        report: dict[str, Any] = {"task": plan.task.name, "sandbox": plan.sandbox.name, "policies": {}}
        for policy in core.isolation_policies(plan):
            run = _Runner(path, host, {**common, "isolation": policy})
            runs: dict[str, Any] = {purpose: _live_row(await run(agent)) for purpose, agent in agents.items()}
            works = runs["reference"]["reward"] == 1 and runs["null"]["reward"] not in (None, 1)
            report["policies"][policy] = {**runs, "works": works}
    working = [name for name, found in report["policies"].items() if found["works"]]
    report |= {"certified": bool(working), "strongest": working[0] if working else None}
    core.keep_live_check(plan, report)
    return report


class _Runner:
    """Runs one rollout of a task and keeps nothing of it."""

    def __init__(self, path: Path, host: RolloutHost, common: dict[str, Any]) -> None:
        self._path, self._host, self._common = path, host, common

    async def __call__(self, agent: str, script: str | None = None) -> RolloutOutcome:
        async def cheat(box: Sandbox) -> None:
            await box.exec(("/bin/sh", "-c", str(script)), user="root", timeout=120)

        jobs = self._host.work_dir / "certify"
        hooks = () if script is None else (cheat,)
        rollout = await self._host.rollout(
            self._path, agent=agent, jobs_dir=jobs, pre_agent_hooks=hooks, **self._common
        )
        result = await rollout.run()
        shutil.rmtree(jobs, ignore_errors=True)
        return result


def _live_row(result: RolloutOutcome) -> dict[str, Any]:
    return {
        "reward": result.reward,
        "error": result.error,
        "verifier_error": result.verifier_error,
        "findings": result.findings,
    }


def _row(result: RolloutOutcome) -> dict[str, Any]:
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
