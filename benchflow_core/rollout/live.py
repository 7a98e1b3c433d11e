"""The live level of `bench tasks check`: play the reference solution and do nothing, under each isolation policy."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchflow_core.results.certified import certify
from benchflow_core.rollout.config import RolloutConfig
from benchflow_core.rollout.defaults import agent_for
from benchflow_core.rollout.host import Host
from benchflow_core.rollout.plan import make_plan
from benchflow_core.rollout.rollout import Rollout
from benchflow_core.verify import policies

__all__ = ["live_check"]


async def live_check(
    path: Path, *, sandbox: str | None = None, allow_substitute: bool = False, allow_env: Sequence[str] = ()
) -> dict[str, Any]:
    """What each policy says of the reference and of doing nothing, and the strongest one under which the task works.

    Kept by the task's digest: a certified task's failing verifier counts against the agent, not as lost coverage.
    """
    async with Host() as host:
        agents = {purpose: agent_for(purpose, host.plugins) for purpose in ("reference", "null")}
        jobs = host.work_dir / "live"
        common: dict[str, Any] = {"sandbox": sandbox, "allow_substitute": allow_substitute, "allow_env": allow_env}
        plan = make_plan(RolloutConfig(path, agent=agents["reference"].name, **common), host.plugins, host.env)
        report: dict[str, Any] = {"task": plan.task.name, "sandbox": plan.sandbox.name, "policies": {}}
        for policy in policies(plan.task, plan.task.verifier, plan.capabilities):
            runs = {}
            for purpose, agent in agents.items():
                config = RolloutConfig(
                    path, agent=agent.name, isolation=policy, jobs_dir=jobs, job_name=policy, **common
                )
                runs[purpose] = _row(await (await Rollout.create(config, host)).run())
            works = runs["reference"]["reward"] == 1 and runs["null"]["reward"] not in (None, 1)
            report["policies"][policy] = {**runs, "works": works}
        shutil.rmtree(jobs, ignore_errors=True)
        working = [name for name, found in report["policies"].items() if found["works"]]
        report |= {"certified": bool(working), "strongest": working[0] if working else None}
        certify(host.cache, plan.digest, report)
        return report


def _row(result: Any) -> dict[str, Any]:
    return {
        "reward": result.reward,
        "error": result.error,
        "verifier_error": result.verifier_error,
        "findings": result.findings,
    }
