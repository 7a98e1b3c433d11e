"""`verify`: from the state an agent left to a score, under an isolation policy, repeatable."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from benchflow_core.contracts.drivers import SoftVerdict
from benchflow_core.contracts.tasks import RewardFiles, Rewards
from benchflow_core.contracts.verifiers import VerifyContext, VerifyResult
from benchflow_core.errors import (
    BenchflowError,
    InfrastructureError,
    PluginFailed,
    SandboxLost,
    TransferRefused,
    VerifierError,
    VerifierTimeout,
)
from benchflow_core.verify.boxes import Boxes, NoBox, Ready, SharedBox
from benchflow_core.verify.findings import Finding, as_json
from benchflow_core.verify.fresh import verify_fresh
from benchflow_core.verify.policy import choose
from benchflow_core.verify.request import OpenBox, Reading, RunVerifier, Verdict, VerifyRequest
from benchflow_core.verify.reward import Output, read_rewards
from benchflow_core.verify.separate import SeparateBox
from benchflow_core.verify.sound import sound
from benchflow_core.world.handover import INSIDE, VARIABLE

__all__ = ["soft_verify", "verify"]

Policy = Callable[[VerifyRequest, RunVerifier], Awaitable[Verdict]]
_GRACE: Final = 120.0
"""Seconds beyond the verifier's own limit for what we do around it."""
_SOFT_OUTPUT: Final = 16_384


async def verify(request: VerifyRequest) -> Verdict:
    """The verdict. Infrastructure failures are raised; a verifier's own failure is in the verdict."""
    return await _verify(request)


async def soft_verify(request: VerifyRequest) -> SoftVerdict:
    """Verification between turns: in a box of its own where possible, so that hidden tests never reach the agent's.

    A weaker policy that was asked for is for the score.
    """
    verdict = await _verify(replace(request, soft=True, policy=None))
    log = request.output_dir / "test-stdout.txt"
    output = log.read_bytes()[-_SOFT_OUTPUT:].decode("utf-8", "replace") if log.is_file() else ""
    return SoftVerdict(
        rewards=verdict.rewards,
        output=output,
        error=verdict.error.message if verdict.error else None,
        tests=tuple(asdict(test) for test in verdict.tests),
    )


async def _verify(request: VerifyRequest) -> Verdict:
    began = time.monotonic()
    policy, notices = choose(request.task, request.settings, request.capabilities, request.policy)
    request.emit("verifier_isolation", {"policy": policy})
    by = _POLICIES[policy] if request.spec.needs_box else _in_boxes(NoBox)
    try:
        verdict = await by(request, partial(_read, request))
    except TransferRefused as error:  # what an agent left is no fault of the infrastructure
        if request.soft or policy == "shared":
            return Verdict(None, policy, error=VerifierError(error.message, remedy=error.remedy))
        policy = "shared"
        request.emit("verifier_isolation", {"policy": policy, "because": error.message})
        verdict = await _POLICIES[policy](request, partial(_read, request))
        said = as_json([Finding("state-not-captured", "/", "noted", error.message)])
        verdict = replace(verdict, findings=(*said, *verdict.findings))
    return replace(
        verdict,
        isolation=policy,
        findings=(*verdict.findings, *as_json(await _live_state(request, policy, verdict.rewards))),
        verification={"policy": policy, **verdict.verification},
        notices=tuple(notices),
        seconds=time.monotonic() - began,
    )


def _in_boxes(kind: Callable[[VerifyRequest], Boxes]) -> Policy:
    """A policy of one reading."""

    async def verify_once(request: VerifyRequest, run: RunVerifier) -> Verdict:
        boxes = kind(request)
        try:
            await boxes.open()
            found = await run(boxes.box, request.output_dir, 2 if boxes.repeatable and not request.soft else 1)
        finally:
            with contextlib.suppress(VerifierError):  # a box without a shell cannot be tidied either
                await boxes.close()
        if isinstance(found.error, InfrastructureError):
            raise found.error
        return Verdict(
            found.rewards,
            "",
            tests=found.tests,
            details=found.details,
            findings=as_json([*boxes.findings, *found.findings]),
            error=found.error,
        )

    return verify_once


_POLICIES: Final[dict[str, Policy]] = {
    "fresh": verify_fresh,
    "shared": _in_boxes(SharedBox),
    "separate": _in_boxes(SeparateBox),
}


async def _read(request: VerifyRequest, open_box: OpenBox, output_dir: Path, attempts: int) -> Reading:
    """Run the verifier until it gives a reward; a failed run is repeated on the same state, and its output is kept."""
    began, failures = time.monotonic(), list[dict[str, Any]]()
    output_dir.mkdir(parents=True, exist_ok=True)
    error: VerifierError | None = None
    findings: list[Finding] = []
    for number in range(1, attempts + 1):
        try:
            async with open_box() as ready, _told(request, ready):
                findings = ready.findings
                result = await _run(replace(request, output_dir=output_dir), ready)
        except VerifierError as failed:
            error = failed
            failures.append(error.to_json())
            request.emit("verifier_failed", {"attempt": number, **error.to_json()})
            if number < attempts:
                _keep_output(output_dir, number)
            continue
        details = {**result.details, **({"failed_attempts": failures} if failures else {})}
        if result.exit_code is not None:
            details["exit_code"] = result.exit_code
        return Reading(dict(result.rewards), result.tests, details, tuple(findings), seconds=time.monotonic() - began)
    details = {"failed_attempts": failures}
    return Reading(details=details, findings=tuple(findings), error=error, seconds=time.monotonic() - began)


@contextlib.asynccontextmanager
async def _told(request: VerifyRequest, ready: Ready) -> AsyncIterator[None]:
    """The world's state and services in the verifier's box. In the agent's own box nothing of it stays."""
    world, own = request.world, ready.box is not request.sandbox
    if world is None or not request.spec.needs_box:
        yield
        return
    await world.lay(ready.box)
    ready.env = {**ready.env, VARIABLE: INSIDE}
    try:
        if own:
            async with world.shown(ready.box, request.image.runtimes):
                yield
        else:
            why = "the agent's processes may still run in this box, and could have taken the world's ports"
            ready.findings += [Finding("world-port-unproven", f"tcp/{port}", "noted", why) for port in world.ports]
            yield
    finally:
        if not own:
            with contextlib.suppress(InfrastructureError):
                await world.clear(ready.box)


async def _run(request: VerifyRequest, ready: Ready) -> VerifyResult:
    settings = request.settings

    async def collect(exit_code: int) -> RewardFiles:
        wants = request.task.dialect.wants
        if not request.spec.needs_box:
            return RewardFiles({}, exit_code)
        if ready.kill:
            await ready.box.kill_all(service=settings.service)
        output = Output(ready.box, settings.logs_target, settings.service)
        reasons = await output.bring(wants, request.output_dir)
        return read_rewards(request.output_dir, wants, exit_code, reasons)

    async def ask(talk: Sequence[tuple[str, str]], system: str) -> str:
        from benchflow_core.gateway.talk import ask as put

        return await put(await request.model("judge"), talk, system=system)

    context = VerifyContext(
        task=request.task,
        step=request.step,
        settings=settings,
        sandbox=ready.box,
        workdir=ready.workdir,
        env=ready.env,
        user=request.user,
        output_dir=request.output_dir,
        emit=request.emit,
        model=request.model,
        collect=collect,
        trajectory=request.trajectory,
        ask=ask,
    )
    request.output_dir.mkdir(parents=True, exist_ok=True)
    try:
        async with asyncio.timeout(settings.timeout + _GRACE):
            return sound(request.verifier.who, await request.spec.verify(context))
    except TimeoutError:
        raise VerifierTimeout(f"the verifier did not come to an end within {settings.timeout:g} s") from None
    except PluginFailed as error:
        if error.details.get("plugin") != request.verifier.who:
            raise  # a sandbox or a gateway failed under it
        raise VerifierError(error.message, remedy=error.remedy) from error
    except BenchflowError:
        raise
    except Exception as error:
        raise VerifierError(f"{request.verifier.who} crashed: {type(error).__name__}: {error}") from error


def _keep_output(folder: Path, number: int) -> None:
    """The output of a failed attempt makes room for the next one's."""
    with tempfile.TemporaryDirectory(prefix=".attempt-", dir=folder.parent) as staged:
        aside = Path(staged) / "output"
        folder.rename(aside)
        folder.mkdir()
        shutil.move(aside, folder / f"attempt-{number}")


async def _live_state(request: VerifyRequest, policy: str, rewards: Rewards | None) -> list[Finding]:
    """A verdict short of full marks may be owed to what ran in the agent's box and was not carried over."""
    if policy == "shared" or (rewards and min(rewards.values()) >= 1):
        return []
    try:
        running = await request.sandbox.processes()
    except SandboxLost:
        return []
    if not running:
        return []
    why = f"{len(running)} processes ran in the agent's box; only their TCP ports can be reached from the verifier's"
    return [Finding("live-state-not-carried", "/proc", "noted", why)]
