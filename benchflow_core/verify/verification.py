"""`verify`: from the state an agent left to a score, under an isolation policy, repeatable."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Final

from benchflow_core.contracts.common import private_folder
from benchflow_core.contracts.drivers import SoftVerdict
from benchflow_core.contracts.sandboxes import DownloadLimits
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
from benchflow_core.verify.capture import author_text
from benchflow_core.verify.findings import Action, Finding, as_json
from benchflow_core.verify.fresh import FreshBox
from benchflow_core.verify.policy import choose
from benchflow_core.verify.request import Verdict, VerifyRequest
from benchflow_core.verify.reward import Output, agree, read_rewards
from benchflow_core.verify.separate import SeparateBox
from benchflow_core.verify.sound import sound
from benchflow_core.world.handover import INSIDE, VARIABLE

__all__ = ["soft_verify", "verify"]

_POLICIES: Final[dict[str, Callable[[VerifyRequest], Boxes]]] = {
    "fresh": FreshBox,
    "shared": SharedBox,
    "separate": SeparateBox,
}
_GRACE: Final = 120.0
"""Seconds beyond the verifier's own limit for what we do around it."""
_SOFT_OUTPUT: Final = 16_384
_SEEN: Final = DownloadLimits(max_bytes=4 * 1024 * 1024, max_entries=5000, max_depth=1)
_GUARD_SAYS: Final[dict[str, tuple[str, Action, str]]] = {
    "ran": ("agent-code-in-verifier", "noted", "the verifier ran it in its own process, where nothing is safe from it"),
    "module": ("shadowing-module", "disarmed", "the verifier's interpreter went on without it, or with its own"),
    "config": ("test-runner-config", "disarmed", "it did not configure the verifier's own tests"),
}


async def verify(request: VerifyRequest) -> Verdict:
    """The verdict. Infrastructure failures are raised; a verifier's own failure is in the verdict."""
    return await _verify(request, attempts=2)


async def soft_verify(request: VerifyRequest) -> SoftVerdict:
    """Verification between turns: in a box of its own where possible, so that hidden tests never reach the agent's.

    A weaker policy that was asked for is for the score.
    """
    verdict = await _verify(replace(request, soft=True, policy=None), attempts=1)
    log = request.output_dir / "test-stdout.txt"
    output = log.read_bytes()[-_SOFT_OUTPUT:].decode("utf-8", "replace") if log.is_file() else ""
    return SoftVerdict(
        rewards=verdict.rewards,
        output=output,
        error=verdict.error.message if verdict.error else None,
        tests=tuple(asdict(test) for test in verdict.tests),
    )


async def _verify(request: VerifyRequest, *, attempts: int) -> Verdict:
    began = time.monotonic()
    policy, notices = choose(request.task, request.settings, request.capabilities, request.policy)
    request.emit("verifier_isolation", {"policy": policy})
    boxes = _POLICIES[policy](request) if request.spec.needs_box else NoBox(request)
    try:
        try:
            await boxes.open()
        except TransferRefused as error:  # what an agent left is no fault of the infrastructure
            if request.soft:
                return Verdict(None, policy, error=VerifierError(error.message, remedy=error.remedy))
            await boxes.close()
            policy, boxes = "shared", SharedBox(request)
            boxes.findings.append(Finding("state-not-captured", "/", "noted", error.message))
            request.emit("verifier_isolation", {"policy": policy, "because": error.message})
        try:
            verdict = await _attempts(request, boxes, attempts if boxes.repeatable else 1)
        except VerifierError as error:  # no box could be made ready for it
            verdict = Verdict(None, "", error=error)
        findings = [*boxes.findings, *await _live_state(request, policy, verdict.rewards)]
    finally:
        with contextlib.suppress(VerifierError):  # a box without a shell cannot be tidied either
            await boxes.close()
    return replace(
        verdict,
        isolation=policy,
        findings=(*as_json(_still_there(findings, verdict)), *verdict.findings),
        notices=tuple(notices),
        seconds=time.monotonic() - began,
    )


def _still_there(findings: Sequence[Finding], verdict: Verdict) -> list[Finding]:
    """What was only noted may have been set aside in the box."""
    aside = {row["path"] for row in verdict.findings if row["action"] == "set-aside"}
    return [f for f in findings if f.action != "noted" or f.path not in aside]


async def _attempts(request: VerifyRequest, boxes: Boxes, attempts: int) -> Verdict:
    """The first that ends with a reward; a failed one is repeated on the same state, and its output is kept."""
    failures: list[dict[str, Any]] = []
    for number in range(1, attempts + 1):
        async with boxes.box() as ready, _told(request, ready):
            try:
                if any(finding.code == "agent-program" for finding in boxes.findings):
                    ready.before = frozenset(await ready.box.processes())
                result = await _run(request, ready)
            except VerifierError as error:
                failures.append(error.to_json())
                request.emit("verifier_failed", {"attempt": number, **error.to_json()})
                if number < attempts:
                    _keep_output(request.output_dir, number)
                    continue
                tried = {"failed_attempts": failures}
                return Verdict(None, "", details=tried, findings=as_json(ready.findings), error=error)
            details = {**result.details, **({"failed_attempts": failures} if failures else {})}
            if result.exit_code is not None:
                details["exit_code"] = result.exit_code
            findings = as_json([*ready.findings, *await _seen(ready)])
            return Verdict(result.rewards, "", tests=result.tests, details=details, findings=findings)
    raise AssertionError("at least one attempt is made")


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
        if ready.before is not None and (left := set(await ready.box.processes()) - ready.before):
            why = f"{len(left)} processes outlived tests that run programs of the agent's: one may have written it"
            ready.findings.append(Finding("left-running", "/proc", "noted", why))
        if ready.kill:
            await ready.box.kill_all(service=settings.service)
        output = Output(ready.box, settings.logs_target, settings.service)
        reasons = await output.bring(wants, request.output_dir)
        found = [name for name in wants if (request.output_dir / name).is_file()]
        unnamed = author_text(request).not_theirs(found) if len(found) > 1 else []
        why = "no test speaks of it, and one speaks of another reward that is there"
        ready.findings += [Finding("foreign-reward", f"{output.folder}/{n}", "set-aside", why) for n in unnamed]
        found = [name for name in found if name not in unnamed]
        asked = len(found) > 1 or (found and author_text(request).switches_user)
        others = await output.written_by_others(found, request.user) if asked else []
        if others and len(found) == 1:
            why = "another user than the verifier's wrote it, and it counts, for the tests may have done so"
            ready.findings.append(Finding("foreign-reward", f"{output.folder}/{found[0]}", "noted", why))
            others = []
        if set(others) == set(found) and agree(request.task.dialect, request.output_dir, found, exit_code):
            others = []
        why = "another user than the verifier's wrote it, beside one that says something else"
        ready.findings += [Finding("foreign-reward", f"{output.folder}/{n}", "set-aside", why) for n in others]
        left_out = {*others, *unnamed}
        return read_rewards(request.output_dir, [n for n in wants if n not in left_out], exit_code, reasons)

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


async def _seen(ready: Ready) -> list[Finding]:
    """What the guard says: which code of the agent's the verifier's own processes ran, and which they did not."""
    if ready.seen is None:
        return []
    said: set[str] = set()
    with private_folder() as folder:
        try:
            await ready.box.download(ready.seen, folder / "seen", limits=_SEEN)
        except (FileNotFoundError, InfrastructureError):
            return []
        for file in sorted((folder / "seen").glob("*"))[:200]:
            said |= set(file.read_bytes()[:65536].decode("utf-8", "replace").splitlines())
    findings = []
    for line in sorted(said):
        what, _, path = line.partition(" ")
        if what in _GUARD_SAYS:
            code, action, why = _GUARD_SAYS[what]
            findings.append(Finding(code, path, action, why))
    return findings
