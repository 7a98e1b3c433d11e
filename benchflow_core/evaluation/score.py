"""`score`: verify finished rollouts again from the state that was kept. Earlier verdicts stay; one of them counts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from benchflow_core.contracts.outcomes import Choice
from benchflow_core.contracts.tasks import Rewards
from benchflow_core.errors import BenchflowError, ConfigurationError
from benchflow_core.evaluation import verdicts
from benchflow_core.evaluation.stored import results_reader
from benchflow_core.evaluation.verdicts import Rescored
from benchflow_core.results.files import read_json
from benchflow_core.results.layout import RolloutDir
from benchflow_core.rollout import prepare
from benchflow_core.rollout.host import Host
from benchflow_core.rollout.plan import plan_verification
from benchflow_core.rollout.rollout import Rollout
from benchflow_core.rollout.state import Captured, State, claim, held, read_state
from benchflow_core.rollout.verification import join_steps
from benchflow_core.settings.models import RolloutConfig
from benchflow_core.settings.written import read_recorded

__all__ = ["score_again"]


async def score_again(
    path: Path,
    *,
    isolation: str | None = None,
    contested: Choice | None = None,
    certificates: bool = True,
    allow_drift: bool = False,
    concurrency: int = 4,
    env: Mapping[str, str] | None = None,
    tell: Callable[[Rescored], None] = lambda found: None,
) -> list[Rescored]:
    """Every finished rollout below a folder. One that fails in any way does not keep another from its verdict."""
    rollouts = results_reader().rollouts(path)
    if not rollouts:
        raise ConfigurationError(f"{path} has no finished rollout.")
    room = asyncio.Semaphore(concurrency)
    asked = {"isolation": isolation, "contested": contested, "certificates": certificates}
    async with Host(env=env, concurrency=concurrency) as host:

        async def one(rollout: Path) -> Rescored:
            async with room:
                found = await _try(rollout, host, asked, allow_drift)
            tell(found)
            return found

        return await asyncio.gather(*map(one, rollouts))


async def _try(folder: Path, host: Host, asked: Mapping[str, Any], allow_drift: bool) -> Rescored:
    before: dict[str, Any] = {}
    try:
        before = read_json(RolloutDir(folder).result)
        state = read_state(folder)
        if state is None:
            raise ConfigurationError("no state was kept of it.", remedy="Run jobs with --keep-state failed or all.")
        claim(state, folder, host.cache)
        again = _Again(folder, before, state, host)
        result = await again.run(asked, allow_drift)
    except (BenchflowError, OSError, ValueError) as error:
        return Rescored(folder, before.get("rewards"), before.get("rewards"), str(error), verdicts.number_of(before))
    number, now = verdicts.number_of(result), result["rewards"]
    problem = None if number == again.number else "the verifier failed this time."
    return Rescored(folder, before.get("rewards"), now, problem or result.get("verifier_error"), number)


class _Again:
    """One rollout's next verdict."""

    def __init__(self, folder: Path, before: dict[str, Any], state: State, host: Host) -> None:
        self.folder, self.before, self.state, self.host = folder, before, state, host
        self.number = verdicts.next_number(folder)

    async def run(self, given: Mapping[str, Any], allow_drift: bool) -> dict[str, Any]:
        config = self._config(given)
        plan = plan_verification(config, self.host.plugins, self.host.env, self.folder)
        if plan.digest != self.before.get("task_digest") and not allow_drift:
            raise ConfigurationError(
                "the task was changed since it ran.", remedy="Put it back, or add --allow-drift: the verdict says so."
            )
        rollout = await Rollout.create(config, self.host, plan=plan)
        rollout.events_before = RolloutDir(self.folder).events
        await rollout.setup()
        reached: list[Rewards | None] = []
        try:
            for captured in self.state.captured:
                reached.append(await self._verify(rollout, captured))
        finally:
            await rollout.models.finish()
            rollout.record.finish()
        if plan.task.steps and any(rewards is not None for rewards in reached):
            rollout.result.rewards = plan.task.dialect.combine(reached)
            join_steps(rollout.result, plan.task.dialect.combine)
        return self._write(rollout, plan.digest)

    def _config(self, given: Mapping[str, Any]) -> RolloutConfig:
        """What verification needs of how the rollout was run; its files go below `verdicts/`."""
        try:
            asked: dict[str, Any] = read_json(RolloutDir(self.folder).config)
            before = read_recorded(asked, "its config.json")
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ConfigurationError(f"its config.json cannot be read: {error}.") from error
        return before.model_copy(
            update={
                "jobs_dir": self.folder,
                "job_name": verdicts.FOLDER,
                "rollout_name": str(self.number),
                "scenes": (),
                "sandbox": self.state.sandbox,
                "sandbox_options": self.state.options,
                "isolation": given["isolation"] or before.isolation,
                "contested": given["contested"] or before.contested,
                "certificates": given["certificates"] and before.certificates,
                "allow_substitute": True,
            }
        )

    async def _verify(self, rollout: Rollout, captured: Captured) -> Rewards | None:
        steps = {step.name: step for step in rollout.plan.task.steps}
        if captured.step is not None and captured.step not in steps:
            raise ConfigurationError(f"the task has no step '{captured.step}' any more.")
        rollout.step = steps[captured.step] if captured.step else None
        place = self.folder / "steps" / captured.step if captured.step else self.folder
        rollout.goes_on_from = place
        opened = await self.host.provider(rollout.plan.sandbox, self.state.options)
        box = await opened.start(captured.snapshot.image, prepare.start_request(rollout))
        try:
            provider, sandbox = held(opened, box, captured.snapshot)
            rollout.adopt(provider, captured.image, sandbox, captured.workdir)
            rollout.result.verifier_error = rollout.result.verifier_error_info = None
            rewards = await rollout.verify()
            await self.host.models.leave(sandbox)
        finally:
            await box.stop()
        if rollout.step is not None:
            error = rollout.result.verifier_error_info
            entry = {"name": rollout.step.name, "rewards": rewards, "error": None, "verifier_error": error}
            rollout.result.step_results.append(entry)
        if captured.running and not (rewards and min(rewards.values()) >= 1):
            why = f"{captured.running} processes ran in the agent's box; they are not part of the state that was kept"
            finding = {"code": "live-state-not-carried", "path": "/proc", "action": "noted", "why": why}
            rollout.result.findings.append(finding)
        return rewards

    def _write(self, rollout: Rollout, digest: str) -> dict[str, Any]:
        """The new verdict counts, unless it is none and there was one before."""
        value = rollout.result.to_json()
        verdicts.keep(self.folder, self.before, value, self.number, digest)
        stands = value["rewards"] is None and self.before.get("rewards") is not None
        return verdicts.count(self.folder, verdicts.number_of(self.before) if stands else self.number)
