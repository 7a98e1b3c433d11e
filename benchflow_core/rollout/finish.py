"""What a rollout writes at its start and at its end."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from benchflow_core import __version__
from benchflow_core.contracts import events as ev
from benchflow_core.contracts.common import Usage
from benchflow_core.results.clock import now
from benchflow_core.results.files import write_bytes, write_json, write_jsonl
from benchflow_core.rollout.lock import lock_of
from benchflow_core.rollout.result import RolloutResult
from benchflow_core.settings.written import recorded

if TYPE_CHECKING:
    from benchflow_core.rollout.rollout import Rollout

__all__ = ["add_usage", "new_result", "sum_usage", "usage_json", "write_config", "write_result"]

CONFIG_VERSION = "1.0"


def new_result(rollout: Rollout) -> RolloutResult:
    config, plan = rollout.config, rollout.plan
    first = next(iter(plan.roles.values()))
    dataset = config.dataset or {}
    return RolloutResult(
        task_name=plan.task.path.name,
        rollout_name=rollout.name,
        job_name=rollout.job,
        agent=first.agent,
        model=first.model,
        sandbox=plan.sandbox.name,
        rollout_dir=rollout.dir,
        task_digest=plan.digest,
        source=dict(config.source_provenance) if config.source_provenance else None,
        dataset_name=dataset.get("name"),
        dataset_version=dataset.get("version"),
        plugins=plan.plugins(),
        core_version=__version__,
        attempt=config.attempt,
        trial=config.trial,
        arm=config.arm,
        scenes=[{"scene": s.scene, "role": s.role, "prompt": s.prompt} for s in plan.steps],
        roles={name: {"agent": r.agent, "model": r.model} for name, r in plan.roles.items()},
    )


def write_config(rollout: Rollout) -> None:
    """`config.json`: what was asked for. Secrets are left out by name here and by value everywhere."""
    config, result = rollout.config, rollout.result
    value: dict[str, Any] = {
        "schema_version": CONFIG_VERSION,
        "task_path": str(config.task_path),
        **recorded(config),
        "agent": result.agent,
        "model": result.model,
        "environment": result.sandbox,
        "sandbox": result.sandbox,
        "driver": rollout.plan.driver.name,
        "driver_params": dict(rollout.plan.driver_params),
        "scenes": result.scenes,
        "roles": result.roles,
        "attempt": config.attempt,
        "trial": config.trial,
        "task_digest": result.task_digest,
        "source": result.source,
        "started_at": result.started_at,
        "plugins": result.plugins,
        "core_version": __version__,
    }
    value |= rollout.features.keys("config")
    if result.dataset_name:
        value |= {"dataset_name": result.dataset_name, "dataset_version": result.dataset_version}
    write_json(rollout.record.dir.config, _clean(rollout, value))


def write_result(rollout: Rollout, seconds: float) -> None:
    """Everything that is derived, then `result.json` last: where it exists, the rollout is finished."""
    result, record = rollout.result, rollout.record
    if rollout.host.orphaned:
        return
    result.finished_at = now()
    result.timing["total"] = seconds
    result.timing = {key: round(value, 3) for key, value in result.timing.items()}
    counts = record.counts
    result.n_tool_calls, result.n_prompts = counts.tool_calls, counts.prompts
    if (
        rollout.error is not None
        and rollout.error.code in ("agent_timeout", "agent_crashed")
        and result.rewards is None
    ):
        _nothing_left(rollout)
    _note_load(rollout)
    if record.log.cut is not None:
        rollout.notice(record.log.cut)
    result.features = rollout.features.keys("result")
    value = _clean(rollout, result.to_json())
    record.event("rollout_finished", {"rewards": result.rewards, "error": result.error, "outcome": result.outcome})
    record.finish()
    folder = record.dir
    write_json(folder.timing, {"schema_version": CONFIG_VERSION, **result.timing})
    write_json(folder.prompts, _clean(rollout, [p["prompt"] for p in record.prompts]))
    write_jsonl(folder.rewards, record.rewards)
    write_json(
        folder.sandbox,
        {
            "schema_version": CONFIG_VERSION,
            "sandbox_id": result.sandbox_id,
            "provider": result.sandbox,
            "created_at": result.started_at,
        },
    )
    write_json(folder.lock, _clean(rollout, lock_of(rollout)))
    _write_agent_files(rollout)
    write_json(folder.result, value)
    record.tell(ev.RolloutFinished, rollout=rollout, result=value)
    rollout.models.forget()


def _write_agent_files(rollout: Rollout) -> None:
    """What readers of older results look for: what was installed, and a log of each agent although it said nothing."""
    folder, lines = rollout.record.dir, []
    for name, agent in rollout.plan.agents.items():
        lines.append(f"{name} ({agent.distribution} {agent.version})" if agent.distribution else name)
        lines += [f"  {layer.key} in {layer.prefix}" for layer in agent.spec.layers] or ["  nothing to install"]
        if not folder.agent_log(name).exists():
            write_bytes(folder.agent_log(name), b"")
    if not (told := folder.agent / "install-stdout.txt").is_dir():  # the agent's own logs lie here too, as it left them
        write_bytes(told, _clean(rollout, "\n".join([*lines, ""])).encode())


def _note_load(rollout: Rollout) -> None:
    """A rollout on a host that had too little to give, or that stood still meanwhile, says so."""
    rollout.load = rollout.host.watch.since(rollout.load_mark)
    flags = {"contended": rollout.load["contended"], "host-stood-still": rollout.load["stood_still_sec"] > 0}
    rollout.result.flags += [name for name, true in flags.items() if true]


def _nothing_left(rollout: Rollout) -> None:
    """The agent failed on its own account and left nothing that could be verified: that is a zero, and flagged."""
    if rollout.config.verify and rollout.result.verifier_error is None:
        rollout.result.rewards = {"reward": 0.0}
        rollout.result.flags.append("nothing-left-to-verify")


def _clean(rollout: Rollout, value: Any) -> Any:
    """Secret values out of everything that is written."""
    return rollout.host.redactor.value(value)


def usage_json(usage: Usage | None) -> dict[str, Any] | None:
    return asdict(usage) if usage is not None else None


def add_usage(rollout: Rollout, role: str, usage: Usage | None) -> None:
    """Sum what agents report themselves, per role and in all; what nobody reported stays unknown."""
    if usage is None:
        return
    details = rollout.result.usage_details.setdefault("by_role", {})
    before = Usage(**details[role]) if role in details else Usage()
    details[role] = asdict(sum_usage(before, usage))
    rollout.result.usage = sum_usage(rollout.result.usage, usage)


def sum_usage(a: Usage, b: Usage) -> Usage:
    """What nobody reported stays unknown."""
    names = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "cost_usd", "requests")
    both = {n: _plus(getattr(a, n), getattr(b, n)) for n in names}
    return replace(b, complete=a.complete and b.complete, **both)


def _plus(a: Any, b: Any) -> Any:
    return b if a is None else a if b is None else a + b
