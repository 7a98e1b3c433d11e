"""Verifiers: the same verdict every time, honest errors, and nothing left running."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import pytest
import pytest_asyncio

from benchflow_core.contracts import (
    ModelEndpoint,
    RewardFiles,
    Rewards,
    Sandbox,
    Task,
    TestOutcome,
    VerifierSettings,
    VerifierSpec,
    VerifyContext,
    VerifyResult,
)
from benchflow_core.errors import RewardInvalid, RewardMissing, VerifierError, VerifierTimeout
from benchflow_testing_kit.boxed import BoxedSuite, scripted_model
from benchflow_testing_kit.sandbox.bench import HEARTBEAT, Bench, beats, ok
from benchflow_testing_kit.suite import limit

__all__ = ["VerifierCase", "VerifierConformance"]

SCRIPT_METHOD = "test-script"


@dataclass(frozen=True)
class VerifierCase:
    """One state of the box and the verdict it deserves."""

    name: str
    expect: Mapping[str, float] | type[VerifierError]
    state: str = ""
    """A shell script, run in the working directory beforehand: what an agent left behind."""
    tests: Mapping[str, str] = field(default_factory=dict)
    """Files of the task's test folder."""
    params: Mapping[str, Any] = field(default_factory=dict)
    """`VerifierSettings.params`."""
    timeout: float = 30.0
    events: Sequence[Mapping[str, Any]] = ()
    """What the event log holds, for a verifier that reads it: `{"kind": "reward", "data": {"value": 1.0}}` …"""


def _script(body: str) -> dict[str, str]:
    return {"test.sh": f"#!/bin/sh\n{body}\n"}


SCRIPT_CASES = (
    VerifierCase(
        "passing", {"reward": 1.0}, "echo yes >answer", _script('grep yes answer && echo 1 >"$KIT_LOGS/reward.txt"')
    ),
    VerifierCase("failing", {"reward": 0.0}, "", _script('[ -e answer ] || echo 0 >"$KIT_LOGS/reward.txt"')),
    VerifierCase("failing with an exit code", {"reward": 0.5}, "", _script('echo 0.5 >"$KIT_LOGS/reward.txt"; exit 3')),
    VerifierCase("no reward", RewardMissing, "", _script("echo no reward today")),
    VerifierCase("garbage", RewardInvalid, "", _script('echo many >"$KIT_LOGS/reward.txt"')),
    VerifierCase("no script", VerifierError, "", {"other.sh": "true"}),
    VerifierCase("hanging", VerifierTimeout, "", _script("sleep 300"), timeout=2.0),
)


class KitDialect:
    """`reward.txt` with one number."""

    name = "kit"
    wants: tuple[str, ...] = ("reward.txt",)

    def parse(self, found: RewardFiles) -> Rewards:
        if "reward.txt" not in found.files:
            raise RewardMissing("reward.txt is missing")
        try:
            return {"reward": float(found.files["reward.txt"])}
        except ValueError as error:
            raise RewardInvalid("reward.txt holds no number") from error

    def combine(self, steps: Sequence[Rewards | None]) -> Rewards:
        return {"reward": 0.0}


Verify = Callable[[VerifierCase], Awaitable[VerifyResult]]


class VerifierConformance(BoxedSuite):
    """Fixtures: `plugin`; `cases` for methods other than `test-script`; `model_endpoint` for judges."""

    kind: ClassVar[str] = "verifier"
    settings: ClassVar[frozenset[str]] = BoxedSuite.settings | {"cases", "model_endpoint"}

    @pytest.fixture
    def cases(self, spec: VerifierSpec) -> Sequence[VerifierCase]:
        """What the verifier is to say of which state. A verifier of test scripts has these already."""
        if SCRIPT_METHOD not in spec.methods:
            pytest.fail(f"{type(self).__name__} needs a fixture `cases`: a list of VerifierCase.")
        return SCRIPT_CASES

    @pytest.fixture
    def model_endpoint(self, request: pytest.FixtureRequest, spec: VerifierSpec) -> ModelEndpoint | None:
        """What `context.model(…)` gives, for verifiers that need a model.

        Where benchflow-testing is installed, its scripted model.
        """
        return scripted_model(request, "chat") if spec.needs_model else None

    @pytest_asyncio.fixture(loop_scope="class")
    async def verifies(
        self, bench: Bench, spec: VerifierSpec, tmp_path: Path, model_endpoint: ModelEndpoint | None
    ) -> Callable[[Sandbox, VerifierCase], Awaitable[VerifyResult]]:
        """Makes the state of a case in a box and verifies it."""
        if spec.needs_model and model_endpoint is None:
            pytest.skip("the verifier needs a model: install benchflow-testing, or give a fixture `model_endpoint`")
        numbers = iter(range(10_000))

        async def model(purpose: str) -> ModelEndpoint:
            assert model_endpoint is not None, f"asked for a model ({purpose}), but `needs_model` is not declared"
            return model_endpoint

        async def verify(box: Sandbox, case: VerifierCase) -> VerifyResult:
            folder = tmp_path / str(next(numbers))
            context = await _context(box, spec, case, folder, model)
            return await spec.verify(context)

        return verify

    def test_methods_are_declared(self, spec: VerifierSpec) -> None:
        assert spec.methods and all(isinstance(m, str) and m == m.strip().lower() and m for m in spec.methods)

    @limit(300)
    async def test_cases_get_their_verdict(self, bench: Bench, verifies: Any, cases: Sequence[VerifierCase]) -> None:
        wrong = []
        for case in cases:
            found = await _verdict(verifies(await bench.start(), case))
            expected = case.expect if isinstance(case.expect, type) else dict(case.expect)
            same = isinstance(found, expected) if isinstance(expected, type) else found == expected
            if not same:
                wrong.append(f"{case.name}: {found!r} instead of {expected!r}")
        assert not wrong, wrong

    @limit(300)
    async def test_verdict_is_repeatable_and_well_formed(
        self, bench: Bench, verifies: Any, cases: Sequence[VerifierCase]
    ) -> None:
        scored = [case for case in cases if not isinstance(case.expect, type)]
        assert scored, "at least one case has a reward"
        for case in scored[:3]:
            first = await verifies(await bench.start(), case)
            second = await verifies(await bench.start(), case)
            assert isinstance(first, VerifyResult)
            assert first.rewards == second.rewards, "the same state gets the same reward"
            assert all(isinstance(k, str) and math.isfinite(v) for k, v in first.rewards.items()), first.rewards
            assert all(isinstance(test, TestOutcome) for test in first.tests)
            json.dumps(dict(first.details))

    @limit(300)
    async def test_no_process_is_left(self, bench: Bench, verifies: Any, cases: Sequence[VerifierCase]) -> None:
        for case in cases:
            box = await bench.start()
            await _verdict(verifies(box, case))
            left = await box.processes()
            assert left == [], f"{case.name}: processes {left} are left in the box"

    @limit(300)
    async def test_cancelled_verification_leaves_no_process(
        self, bench: Bench, spec: VerifierSpec, verifies: Any, cases: Sequence[VerifierCase]
    ) -> None:
        box = await bench.start()
        beating = f"{box.info.workdir}/beat"
        case = cases[0]
        if SCRIPT_METHOD in spec.methods:
            case = replace(SCRIPT_CASES[-1], tests=_script(f"set -- {beating}; {HEARTBEAT}"), timeout=60.0)
        task = asyncio.create_task(verifies(box, case))
        await asyncio.sleep(1)
        task.cancel()
        await asyncio.wait([task], timeout=30)
        assert task.done(), "cancellation is ignored"
        assert await box.processes() == []
        assert await beats(box, [beating]) == []

    @limit(300)
    async def test_verifier_uses_the_pinned_environment(self, bench: Bench, spec: VerifierSpec, verifies: Any) -> None:
        if SCRIPT_METHOD not in spec.methods:
            pytest.skip("only for verifiers that run test scripts")
        body = 'if [ "$KIT_PINNED" = "pinned value" ] && [ "$(pwd -P)" = "$KIT_WORKDIR" ]; then echo 1; else echo 0; fi'
        case = VerifierCase("environment", {"reward": 1.0}, "", _script(f'({body}) >"$KIT_LOGS/reward.txt"'))
        assert (await verifies(await bench.start(), case)).rewards == {"reward": 1.0}

    @limit(300)
    async def test_output_of_a_script_is_kept(
        self, bench: Bench, spec: VerifierSpec, verifies: Any, tmp_path: Path
    ) -> None:
        if SCRIPT_METHOD not in spec.methods:
            pytest.skip("only for verifiers that run test scripts")
        body = 'echo to-stdout; echo to-stderr >&2; echo 1 >"$KIT_LOGS/reward.txt"; echo extra >"$KIT_LOGS/extra.txt"'
        await verifies(await bench.start(), VerifierCase("output", {"reward": 1.0}, "", _script(body)))
        kept = "".join(f.read_text() for f in (tmp_path / "0" / "output").rglob("*") if f.is_file())
        assert all(word in kept for word in ("to-stdout", "to-stderr", "extra")), kept


async def _verdict(verdict: Awaitable[VerifyResult]) -> Rewards | Exception:
    try:
        return dict((await verdict).rewards)
    except VerifierError as error:
        return error


async def _context(
    box: Sandbox,
    spec: VerifierSpec,
    case: VerifierCase,
    folder: Path,
    model: Callable[[str], Awaitable[ModelEndpoint]],
) -> VerifyContext:
    """As the core hands a box to a verifier: the agent's work in place, tests and an empty log folder laid out."""
    workdir = (await ok(box, "pwd -P")).strip()
    tests, logs = f"{workdir}/kit-tests", f"{workdir}/kit-logs"
    await ok(box, f'mkdir "$1"; {case.state}', logs)
    await box.upload(_write_tests(folder, case), tests)
    settings = VerifierSettings(
        method=SCRIPT_METHOD if SCRIPT_METHOD in spec.methods else sorted(spec.methods)[0],
        tests=(folder / "tests",),
        tests_target=tests,
        logs_target=logs,
        timeout=case.timeout,
        params=case.params,
    )
    pinned = {"HOME": workdir, "KIT_PINNED": "pinned value", "KIT_LOGS": logs, "KIT_WORKDIR": workdir}
    return VerifyContext(
        task=Task(name="kit", path=folder, format="kit", instruction="-", dialect=KitDialect(), verifier=settings),
        step=None,
        settings=settings,
        sandbox=box,
        workdir=workdir,
        env={"PATH": (await ok(box, 'printf %s "$PATH"')).strip(), **pinned},
        user=None,
        output_dir=folder / "output",
        emit=lambda kind, data: None,
        model=model,
        collect=_collector(box, logs, folder / "output"),
        trajectory=_write_events(folder, case),
        ask=_asker(model),
    )


def _asker(
    model: Callable[[str], Awaitable[ModelEndpoint]],
) -> Callable[[Sequence[tuple[str, str]], str], Awaitable[str]]:
    async def ask(talk: Sequence[tuple[str, str]], system: str) -> str:
        from benchflow_core.gateway.talk import ask as put

        return await put(await model("judge"), talk, system=system)

    return ask


def _write_events(folder: Path, case: VerifierCase) -> Path:
    log = folder / "events.jsonl"
    lines = [{"v": 1, "seq": n, "kind": "", "data": {}, **event} for n, event in enumerate(case.events, 1)]
    log.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return log


def _write_tests(folder: Path, case: VerifierCase) -> Path:
    tests = folder / "tests"
    tests.mkdir(parents=True)
    (folder / "output").mkdir()
    for name, text in case.tests.items():
        (tests / name).write_text(text)
        (tests / name).chmod(0o755)
    return tests


def _collector(box: Sandbox, logs: str, output: Path) -> Callable[[int], Awaitable[RewardFiles]]:
    async def collect(exit_code: int) -> RewardFiles:
        await box.kill_all()
        await box.download(logs, output)
        reward = output / "reward.txt"
        return RewardFiles({reward.name: reward.read_bytes()} if reward.is_file() else {}, exit_code)

    return collect
