"""A rollout's verification: asking for the verdict, and what it means for the result."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from benchflow_core.contracts.drivers import SoftVerdict
from benchflow_core.contracts.outcomes import contested_scores, scores_of_steps
from benchflow_core.contracts.sandboxes import Sandbox
from benchflow_core.contracts.tasks import Rewards
from benchflow_core.errors import ErrorKind, InfrastructureError
from benchflow_core.results.certified import is_certified
from benchflow_core.rollout import prepare
from benchflow_core.rollout.credit import disk_full
from benchflow_core.rollout.feature_views import BoxView
from benchflow_core.rollout.hostwatch import host_cpus, host_memory_mb
from benchflow_core.rollout.reference import reference_of
from benchflow_core.rollout.state import held
from benchflow_core.verify import Verdict, VerifyRequest, policies, soft_verify, verify

if TYPE_CHECKING:
    from benchflow_core.rollout.result import RolloutResult
    from benchflow_core.rollout.rollout import Rollout

__all__ = ["join_steps", "run_soft_verify", "run_verify", "verify_request"]

_NOT_CAPTURED: Final = "state-not-captured"
_WITHIN_REACH: Final = "between turns the tests ran in the agent's own box: what it left running there could read them"


def verify_request(rollout: Rollout, output_dir: Path) -> VerifyRequest:
    start = prepare.start_request(rollout)
    settings = rollout.settings()
    rollout.record.log.flush()  # a verifier may read what happened so far
    return VerifyRequest(
        task=rollout.plan.task,
        step=rollout.step,
        settings=settings,
        verifier=rollout.plan.verifiers[settings.method],
        plugins=rollout.host.plugins,
        provider=rollout.provider,
        image=rollout.image,
        sandbox=rollout.sandbox,
        capabilities=rollout.plan.capabilities,
        policy=rollout.config.isolation,
        start=replace(start, name=f"{start.name}/verifier", labels={**start.labels, "purpose": "verifier"}),
        env=prepare.verifier_env(rollout),
        output_dir=output_dir,
        emit=rollout.said,
        model=rollout.model,
        workdir=rollout.workdir,
        around=partial(_around, rollout),
        service_ports=rollout.plan.features.ports,
        trajectory=rollout.events_before or rollout.record.dir.events,
        reference=partial(reference_of, rollout) if rollout.config.certificates else None,
        reference_run=rollout.is_reference,
        spare=_has_room(rollout),
    )


def _has_room(rollout: Rollout) -> bool:
    """Tell whether every rollout of the job could have a second box beside its verifier's."""
    spec, resources = rollout.plan.sandbox.spec, rollout.plan.task.environment.resources
    boxes = 2 * rollout.host.concurrency
    if spec.max_concurrency is not None and boxes > spec.max_concurrency:
        return False
    cpus, memory = resources.cpus or 1, resources.memory_mb or 1024
    return not spec.on_host or (boxes * cpus <= host_cpus() and boxes * memory <= host_memory_mb())


def _around(rollout: Rollout, box: Sandbox, workdir: str) -> AbstractAsyncContextManager[Mapping[str, str]]:
    """Enter what features bring to a verifier's box."""
    return rollout.features.variables("verifier", BoxView(rollout, box, workdir=workdir))


async def run_verify(rollout: Rollout) -> Rewards | None:
    """Verify, record, and settle the score by the table of design §6."""
    target = (
        rollout.record.dir.verifier
        if rollout.step is None
        else rollout.record.dir.steps / rollout.step.name / "verifier"
    )
    if rollout.step is None:  # this verdict replaces an earlier one
        rollout.result.verifier_error = rollout.result.verifier_error_info = None
    request = verify_request(rollout, target)
    if (kept := await rollout.keeper.capture()) is not None:
        provider, box = held(request.provider, request.sandbox, kept)
        request = replace(request, provider=provider, sandbox=box)
    try:
        async with rollout.features.verification(rollout.box_view, target.parent):
            verdict = await verify(request)
    except InfrastructureError as error:
        if (full := disk_full(rollout)) is not None:
            raise full from error
        raise
    if (full := disk_full(rollout)) is not None:
        raise full
    for folder in (target, *target.parent.glob(f"{target.name}-*")):
        rollout.host.redactor.tree(folder)
    if verdict.error is not None and not rollout.plan.task.path.is_dir():
        raise prepare.disappeared(rollout)
    _note(rollout, verdict)
    rewards = _counted(rollout, verdict)
    if verdict.error is not None:
        rollout.record.event("error", verdict.error.to_json())
        rollout.result.verifier_error = rollout.host.redactor.text(verdict.error.message)
        rollout.result.verifier_error_info = verdict.error.to_json()
        if verdict.error.kind is ErrorKind.VERIFIER and is_certified(rollout.host.cache, rollout.plan.digest):
            rewards = {"reward": 0.0}
            rollout.result.flags.append("verifier-failed-on-certified-task")
        elif verdict.error.kind is ErrorKind.VERIFIER and any(f["code"] == _NOT_CAPTURED for f in verdict.findings):
            rewards = {"reward": 0.0}
            rollout.result.flags.append("nothing-left-to-verify")
    if rollout.step is None:
        rollout.result.rewards = rewards
    for name, value in (rewards or {}).items():
        rollout.record.reward(value, "terminal", "verifier", tag=name)
    return rewards


def _note(rollout: Rollout, verdict: Verdict) -> None:
    result = rollout.result
    result.isolation = verdict.isolation
    rollout.changes += verdict.changes
    verification = rollout.host.redactor.value(dict(verdict.verification))
    if rollout.step is None:
        result.verification = verification
    else:
        result.verification.setdefault("steps", {})[rollout.step.name] = verification
    result.findings += [_as_json(f) for f in verdict.findings]
    result.tests += [_as_json(t) for t in verdict.tests]
    for notice in verdict.notices:
        rollout.notice(notice)


def _counted(rollout: Rollout, verdict: Verdict) -> Rewards | None:
    """The rewards under the job's choice about contested scores."""
    choice = rollout.config.contested
    scores = contested_scores({"verification": verdict.verification})
    if scores is None:
        return verdict.rewards
    by = ", ".join(culprit["path"] for culprit in verdict.verification["culprits"][:3]) or "the agent's changes"
    rollout.notice(f"contested: as left it earns {_text(scores['as-left'])}, clean {_text(scores['clean'])}; by {by}")
    if choice == "unscored":
        rollout.result.verifier_error = "the score is contested, and was left out"
        rollout.result.verifier_error_info = {"kind": "verifier", "code": "contested", "retryable": False}
    return None if choice == "unscored" else scores[choice]


def _text(rewards: Rewards | None) -> str:
    return ", ".join(f"{name} {value:g}" for name, value in (rewards or {}).items()) or "no reward"


def join_steps(result: RolloutResult, combine: Callable[[Sequence[Rewards | None]], Rewards]) -> None:
    """A task with steps is contested where one of them is, and its scores are combined as its rewards are."""
    steps = result.verification.get("steps")
    if steps:
        rewards = {row["name"]: row["rewards"] for row in result.step_results}
        result.verification = scores_of_steps(steps, combine, rewards)


def _as_json(value: Any) -> dict[str, Any]:
    from dataclasses import asdict, is_dataclass

    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else dict(value)


async def run_soft_verify(rollout: Rollout) -> SoftVerdict:
    rollout.record.event("soft_verify_started")
    target = rollout.host.work_dir / f"{rollout.name}-soft-{rollout.turn}"
    async with rollout.features.verification(rollout.box_view, target):
        request = verify_request(rollout, target / "verifier")
        if policies(request.task, request.settings, request.capabilities, request.plugins)[0] == "shared":
            rollout.notice(_WITHIN_REACH)
        verdict = await soft_verify(request)
    rollout.record.event("soft_verify_finished", {"rewards": verdict.rewards, "error": verdict.error})
    return verdict
