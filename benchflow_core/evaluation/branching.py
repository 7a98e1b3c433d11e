"""`branch`: go on several times from the state that a finished rollout left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchflow_core.errors import ConfigurationError
from benchflow_core.results.files import read_json
from benchflow_core.results.layout import RolloutDir
from benchflow_core.rollout.branch import Branch, Origin, run_children
from benchflow_core.rollout.host import Host
from benchflow_core.rollout.plan import make_plan
from benchflow_core.rollout.state import State, claim, read_state
from benchflow_core.settings.models import RolloutConfig
from benchflow_core.settings.written import read_recorded

__all__ = ["branch_again"]


async def branch_again(
    folder: Path,
    n: int,
    *,
    prompts: Sequence[str] = (),
    agent: str | None = None,
    model: str | None = None,
    concurrency: int = 1,
    env: Mapping[str, str] | None = None,
) -> Branch:
    """n continuations of a rollout that was run with `--keep-state`, below its folder."""
    state = read_state(folder)
    if state is None or not state.captured:
        raise ConfigurationError(
            f"no state was kept of {folder}.", remedy="Run the job with --keep-state all; it works on such rollouts."
        )
    async with Host(env=env, concurrency=concurrency) as host:
        claim(state, folder, host.cache)
        config = _config(folder, state, agent, model)
        plan = make_plan(config, host.plugins, host.env)
        if plan.task.steps:
            raise ConfigurationError(f"task '{plan.task.name}' has several steps: it cannot be branched.")
        captured = state.captured[-1]
        origin = Origin(
            config,
            plan,
            host,
            await host.provider(plan.sandbox, config.sandbox_options),
            captured.image,
            captured.snapshot,
            captured.workdir,
            folder,
            folder,
        )
        return await run_children(origin, n, None, prompts=list(prompts) or None, concurrency=concurrency)


def _config(folder: Path, state: State, agent: str | None, model: str | None) -> RolloutConfig:
    """As the rollout was asked for, in the sandbox that has its state; what was brought into the box is in that."""
    asked: dict[str, Any] = read_json(RolloutDir(folder).config)
    chosen = (asked.get("world") or {}).get("chosen")  # an older file says it only there
    before = read_recorded({"state": chosen, **asked}, str(RolloutDir(folder).config))
    fields = type(before).model_fields
    start = {name: fields[name].default for name in _IN_THE_STATE if name in fields}
    return before.model_copy(
        update={
            **start,
            "agent": agent or asked["agent"],
            "model": model or (asked["model"] if agent is None else None),
            "sandbox": state.sandbox,
            "sandbox_options": state.options,
            "allow_substitute": True,
        }
    )


_IN_THE_STATE = ("scenes", "prompts", "driver", "driver_params", "uploads", "skill_mode", "skills_dir", "keep_state")
