"""`branch`: go on several times from the state that a finished rollout left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from benchflow_core.errors import ConfigurationError
from benchflow_core.results.files import read_json
from benchflow_core.results.layout import RolloutDir
from benchflow_core.rollout.branch import Branch, Origin, run_children
from benchflow_core.rollout.config import RolloutConfig
from benchflow_core.rollout.host import Host
from benchflow_core.rollout.plan import make_plan
from benchflow_core.rollout.state import State, claim, read_state
from benchflow_core.world.choice import recorded_choice

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
    """As the rollout was asked for, in the sandbox that has its state."""
    asked: dict[str, Any] = read_json(RolloutDir(folder).config)
    same = {name: asked[name] for name in _SAME if asked.get(name) is not None}
    config = RolloutConfig(
        task_path=Path(asked["task_path"]),
        agent=agent or asked["agent"],
        model=model or (asked["model"] if agent is None else None),
        sandbox=state.sandbox,
        sandbox_options=state.options,
        **same,
    )
    world = asked.get("world") or {}
    pinned = world.get("manifest") if world.get("pinned_by") == "option" else None
    return replace(
        config, environment=None, environment_manifest=pinned, state=recorded_choice(world), allow_substitute=True
    )


_SAME = tuple(
    {
        "sandbox_user",
        "agent_options",
        "permissions",
        "client_methods",
        "isolation",
        "allow_env",
        "services",
        "reasoning_effort",
    }
    & {field.name for field in fields(RolloutConfig)}
)
