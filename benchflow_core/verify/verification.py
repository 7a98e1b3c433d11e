"""`verify`: from the state an agent left to a score, under an isolation policy, repeatable."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from benchflow_core.contracts.drivers import SoftVerdict
from benchflow_core.contracts.isolation import OpenBox, Verdict, VerifyBox, noted
from benchflow_core.contracts.sandboxes import HostEndpoint
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
from benchflow_core.gateway.expose import show
from benchflow_core.plugins.dotted import resolve
from benchflow_core.verify.boxes import make_folders, verify_shared, verify_without_box
from benchflow_core.verify.policy import choose, policy_named
from benchflow_core.verify.request import VerifyRequest
from benchflow_core.verify.reward import Output, read_rewards
from benchflow_core.verify.validate import validate_result

__all__ = ["soft_verify", "verify"]

_GRACE: Final = 120.0
"""Seconds beyond the verifier's own limit for what we do around it."""
_SOFT_OUTPUT: Final = 16_384
_SHOWN: Final = 20
_LOST: Final = "the sandbox cannot show a port of one box in another"
_FORWARD: Final = "benchflow_wires:forwarded"


async def soft_verify(request: VerifyRequest) -> SoftVerdict:
    """Verify between turns: in a box of its own where possible, so that hidden tests never reach the agent's.

    A weaker policy that was asked for is for the score.
    """
    verdict = await verify(replace(request, soft=True, policy=None))
    log = request.output_dir / "test-stdout.txt"
    output = log.read_bytes()[-_SOFT_OUTPUT:].decode("utf-8", "replace") if log.is_file() else ""
    return SoftVerdict(
        rewards=verdict.rewards,
        output=output,
        error=verdict.error.message if verdict.error else None,
        tests=tuple(asdict(test) for test in verdict.tests),
    )


async def verify(request: VerifyRequest) -> Verdict:
    """Return the verdict. Infrastructure failures are raised; a verifier's own failure is in the verdict."""
    began = time.monotonic()
    policy, notices = choose(request.task, request.settings, request.capabilities, request.policy, request.plugins)
    request.emit("verifier_isolation", {"policy": policy})
    run = partial(_run, request)
    by = policy_named(policy, request.plugins) if request.spec.needs_box else verify_without_box
    try:
        verdict = await by(request, run)
    except TransferRefused as error:  # what an agent left is no fault of the infrastructure
        if request.soft or policy == "shared":
            return Verdict(None, policy, error=VerifierError(error.message, remedy=error.remedy))
        policy = "shared"
        request.emit("verifier_isolation", {"policy": policy, "because": error.message})
        verdict = await verify_shared(request, run)
        said = noted("state-not-captured", "/", error.message)
        verdict = replace(verdict, findings=(said, *verdict.findings))
    if isinstance(verdict.error, InfrastructureError):
        raise verdict.error
    return replace(
        verdict,
        isolation=policy,
        findings=_grouped([*verdict.findings, *await _live_state(request, policy, verdict.rewards)]),
        verification={"policy": policy, **verdict.verification},
        notices=tuple(notices),
        seconds=time.monotonic() - began,
    )


async def _run(request: VerifyRequest, open_box: OpenBox, output_dir: Path, attempts: int) -> Verdict:
    """Run the verifier until it gives a reward; a failed run is repeated on the same state, and its output is kept."""
    began, failures = time.monotonic(), list[dict[str, Any]]()
    output_dir.mkdir(parents=True, exist_ok=True)
    error: VerifierError | None = None
    findings: list[dict[str, Any]] = []
    for number in range(1, attempts + 1):
        try:
            async with open_box() as box, _ready(request, box) as env:
                findings = box.findings
                result = await _result(replace(request, output_dir=output_dir), box, env)
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
        seconds = time.monotonic() - began
        return Verdict(
            dict(result.rewards), tests=result.tests, details=details, findings=tuple(findings), seconds=seconds
        )
    details, seconds = {"failed_attempts": failures}, time.monotonic() - began
    return Verdict(None, details=details, findings=tuple(findings), error=error, seconds=seconds)


@contextlib.asynccontextmanager
async def _ready(request: VerifyRequest, box: VerifyBox) -> AsyncIterator[dict[str, str]]:
    """Make the box what every verifier finds: new folders, the agent's ports, what features bring. Yields variables."""
    env, settings, own = request.env_in(box), request.settings, box.sandbox is not request.sandbox
    if not request.spec.needs_box:
        yield env
        return
    gone, service = ("", "main") if own or not settings.tests else (settings.tests_target, settings.service)
    try:
        await make_folders(box.sandbox, (settings.logs_target,), box.workdir, gone, service)
    except SandboxLost:
        raise
    except InfrastructureError as error:
        raise VerifierError(f"the verifier's box could not be made ready: {error.message}") from error
    async with contextlib.AsyncExitStack() as stack:
        if box.ports:
            reached = await stack.enter_async_context(_forwarded(request, box, stack))
            lost = [port for port in box.ports if port not in reached]
            box.findings += [noted("port-not-forwarded", f"tcp/{port}", _LOST) for port in lost]
        if request.around is not None:
            env |= await stack.enter_async_context(request.around(box.sandbox, box.workdir))
        yield env


def _forwarded(
    request: VerifyRequest, box: VerifyBox, stack: contextlib.AsyncExitStack
) -> contextlib.AbstractAsyncContextManager[list[int]]:
    """Carry the agent's ports into the verifier's box, through the library that knows how."""

    async def show_port(endpoint: HostEndpoint, port: int) -> str:
        return await show(stack, box.sandbox, endpoint, port, request.image.runtimes)

    forward = resolve(_FORWARD, "a verifier's box that shows ports of the agent's")
    found: contextlib.AbstractAsyncContextManager[list[int]] = forward(request.sandbox, box.ports, show_port)
    return found


async def _result(request: VerifyRequest, box: VerifyBox, env: Mapping[str, str]) -> VerifyResult:
    settings = request.settings

    async def collect(exit_code: int) -> RewardFiles:
        wants = request.task.dialect.wants
        if not request.spec.needs_box:
            return RewardFiles({}, exit_code)
        if box.kill:
            await box.sandbox.kill_all(service=settings.service)
        output = Output(box.sandbox, settings.logs_target, settings.service)
        reasons = await output.bring(wants, request.output_dir)
        return read_rewards(request.output_dir, wants, exit_code, reasons)

    async def ask(talk: Sequence[tuple[str, str]], system: str) -> str:
        from benchflow_core.gateway.talk import ask as put

        return await put(await request.model("judge"), talk, system=system)

    context = VerifyContext(
        task=request.task,
        step=request.step,
        settings=settings,
        sandbox=box.sandbox,
        workdir=box.workdir,
        env=env,
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
            return validate_result(request.verifier.who, await request.spec.verify(context))
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


async def _live_state(request: VerifyRequest, policy: str, rewards: Rewards | None) -> list[dict[str, Any]]:
    """A verdict short of full marks may be owed to what ran in the agent's box and was not carried over."""
    if policy == "shared" or (rewards and min(rewards.values()) >= 1):
        return []
    try:
        running = await request.sandbox.processes()
    except SandboxLost:
        return []
    why = f"{len(running)} processes ran in the agent's box; only their TCP ports can be reached from the verifier's"
    return [noted("live-state-not-carried", "/proc", why)] if running else []


def _grouped(findings: Iterable[Mapping[str, Any]]) -> tuple[dict[str, Any], ...]:
    """Return equal findings once, and of many alike the first few with the number of the rest."""
    groups: dict[tuple[str, str], list[str]] = {}
    for code, path, why in dict.fromkeys((f["code"], f["path"], f["why"]) for f in findings):
        groups.setdefault((code, why), []).append(path)
    rows: list[dict[str, Any]] = []
    for (code, why), paths in groups.items():
        rows += [noted(code, path, why) for path in paths[:_SHOWN]]
        if rest := len(paths[_SHOWN:]):
            rows.append({**noted(code, f"and {rest} more", why), "count": rest})
    return tuple(rows)
