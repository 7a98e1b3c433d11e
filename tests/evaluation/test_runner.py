"""The scheduling loop: retry by type, back-off without a slot, budgets, stopping, one failure harming nobody."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from benchflow_core.errors import (
    BuildError,
    ConfigurationError,
    CredentialRefused,
    ExecutorLost,
    InfrastructureError,
    ProviderRateLimited,
    UnknownModel,
    WorkerDiffers,
)
from benchflow_core.evaluation.budget import Budget, Spent, spent_of
from benchflow_core.evaluation.items import Item
from benchflow_core.evaluation.jobfile import Entry
from benchflow_core.evaluation.runner import Runner
from benchflow_core.evaluation.schedule import Need, Slots
from benchflow_core.settings.models import RetryConfig

OK = {"rewards": {"reward": 1.0}, "error": None, "error_info": None}


def failed(error):
    return {"rewards": None, "error": error.message, "error_info": error.to_json()}


def entries(count, image=lambda n: "i"):
    return [Entry(n, f"r{n}", Item(Path(f"t{n}"), 1, None), image=image(n)) for n in range(count)]


class Stage:
    """A runner whose rollouts are scripted; everything else is real."""

    def __init__(self, attempt, *, concurrency=2, retry=None, budget=None, pools=(), builds=1, image=None):
        self.started, self.finished, self.told = [], {}, []
        self.active = self.peak = 0

        async def run(entry):
            self.started.append(entry.name)
            self.active += 1
            self.peak = max(self.peak, self.active)
            try:
                return await attempt(entry)
            finally:
                self.active -= 1

        async def made(entry):
            if image is not None:
                await image(entry)

        self.runner = Runner(
            attempt=run,
            image=made,
            finished=lambda entry, result: self.finished.setdefault(entry.name, result),
            need=lambda entry: Need(pools=pools),
            slots=Slots(cpus=64, memory_mb=1e6, concurrency=concurrency),
            retry=retry or RetryConfig(max_retries=2, min_wait_sec=0.01),
            budget=budget or Budget(),
            spent=Spent(),
            tell=lambda kind, data: self.told.append((kind, data)),
            builds=builds,
        )


async def test_everything_runs_once_within_the_bound():
    async def attempt(entry):
        await asyncio.sleep(0)
        return OK

    stage = Stage(attempt, concurrency=3)
    await stage.runner.run(entries(50))
    assert sorted(stage.started) == sorted(stage.finished) == sorted(f"r{n}" for n in range(50))
    assert stage.peak == 3 and stage.runner.left == 0 and stage.runner.stopping is None


async def test_errors_worth_it_are_tried_again_and_others_are_not():
    async def attempt(entry):
        return failed(InfrastructureError("lost") if entry.name == "r0" else BuildError("broken"))

    stage = Stage(attempt)
    await stage.runner.run(entries(2))
    assert stage.started.count("r0") == 3 and stage.started.count("r1") == 1
    assert set(stage.finished) == {"r0", "r1"}


async def test_waiting_to_try_again_holds_no_slot():
    """With one slot, the second rollout runs while the first waits."""
    order = []

    async def attempt(entry):
        order.append(entry.name)
        return failed(InfrastructureError("lost")) if order == ["r0"] else OK

    stage = Stage(attempt, concurrency=1, retry=RetryConfig(max_retries=1, min_wait_sec=0.2))
    await stage.runner.run(entries(3))
    assert order == ["r0", "r1", "r2", "r0"]


async def test_a_rate_limit_quiets_the_whole_provider():
    order = []

    async def attempt(entry):
        order.append(entry.name)
        return failed(ProviderRateLimited("slow", details={"retry_after": 0.2})) if order == ["r0"] else OK

    stage = Stage(attempt, concurrency=1, pools=("provider:x",))
    await stage.runner.run(entries(3))
    assert order[0] == "r0" and order[1] == "r0", "the limited one comes first again, and nobody asked meanwhile"
    assert [d["wait"] for k, d in stage.told if k == "retry"] == [0.2]


@pytest.mark.parametrize("error", [CredentialRefused, UnknownModel, WorkerDiffers, ExecutorLost])
async def test_what_every_rollout_would_meet_stops_the_job(error):
    async def attempt(entry):
        return failed(error("it is refused"))

    stage = Stage(attempt, concurrency=1)
    await stage.runner.run(entries(5))
    assert stage.started == ["r0"] and stage.runner.stopping == "it is refused" and stage.runner.left == 4


@pytest.mark.parametrize(
    ("budget", "usage", "said"),
    [
        (Budget(max_tokens=25), {"total_tokens": 10, "cost_usd": None}, "--max-tokens 25"),
        (Budget(max_cost=0.25), {"total_tokens": 10, "cost_usd": 0.1}, "--max-cost 0.25"),
        (
            Budget(max_tokens=25),
            {"usage_details": {"gateway": {"judge": {"input_tokens": 8, "output_tokens": 2}}}},
            "25",
        ),
        (
            Budget(max_tokens=25),
            {"usage_details": {"gateway": {"user": {"input_tokens": 9, "output_tokens": 1}}}},
            "25",
        ),
        (Budget(max_cost=0.25), {"usage_details": {"gateway": {"judge": {"cost_usd": 0.1}}}}, "--max-cost 0.25"),
        (Budget(max_cost=0.25), {"usage_details": {"gateway": {"user": {"cost_usd": 0.1}}}}, "--max-cost 0.25"),
    ],
)
async def test_a_budget_starts_nothing_more(budget, usage, said):
    async def attempt(entry):
        return {**OK, "agent_result": usage}

    stage = Stage(attempt, concurrency=1, budget=budget)
    await stage.runner.run(entries(10))
    assert len(stage.finished) == 3 and said in stage.runner.stopping and stage.runner.left == 7


@pytest.mark.parametrize(
    ("agent", "judge", "unknown"),
    [
        ((10, 0.1), (5, 0.2), 0),
        ((10, None), (5, 0.2), 1),
        ((10, 0.1), (5, None), 1),
        ((0, None), (5, 0.2), 0),
    ],
)
def test_a_cost_that_one_of_them_cannot_tell_is_unknown(agent, judge, unknown):
    usage = {"total_tokens": agent[0], "cost_usd": agent[1]}
    usage["usage_details"] = {"gateway": {"judge": {"input_tokens": judge[0], "cost_usd": judge[1]}}}
    spent = spent_of({"agent_result": usage})
    assert (spent.tokens, spent.unknown) == (agent[0] + judge[0], unknown)
    assert spent.cost == pytest.approx((agent[1] or 0) + (judge[1] or 0))


def test_what_nobody_reported_is_not_zero():
    silent = spent_of({"agent_result": {"total_tokens": None, "cost_usd": None}}) + spent_of({})
    assert (silent.tokens, silent.cost_usd, silent.unknown) == (None, None, 0)
    told = silent + spent_of({"agent_result": {"total_tokens": 0, "cost_usd": 0.0}})
    assert (told.tokens, told.cost_usd) == (0, 0.0)


async def test_draining_finishes_what_runs():
    gate = asyncio.Event()

    async def attempt(entry):
        await gate.wait()
        return OK

    stage = Stage(attempt, concurrency=2)
    running = asyncio.create_task(stage.runner.run(entries(6)))
    while stage.active < 2:
        await asyncio.sleep(0)
    stage.runner.drain("enough")
    gate.set()
    await running
    assert set(stage.finished) == {"r0", "r1"} and stage.runner.left == 4


async def test_cancelling_waits_until_every_rollout_is_torn_down():
    down = []

    async def attempt(entry):
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.05)
            down.append(entry.name)

    stage = Stage(attempt, concurrency=2)
    running = asyncio.create_task(stage.runner.run(entries(6)))
    while stage.active < 2:
        await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert sorted(down) == ["r0", "r1"]


async def test_a_defect_of_ours_is_raised_after_the_others_are_finished():
    async def attempt(entry):
        if entry.name == "r0":
            raise RuntimeError("ours")
        await asyncio.sleep(0.05)
        return OK

    stage = Stage(attempt, concurrency=2)
    with pytest.raises(RuntimeError, match="ours"):
        await stage.runner.run(entries(4))
    assert set(stage.finished) == {"r1"}


async def test_images_are_bounded_and_hold_no_slot():
    building, peak = 0, 0
    release = asyncio.Event()

    async def image(entry):
        nonlocal building, peak
        building += 1
        peak = max(peak, building)
        if entry.image == "slow":
            await release.wait()
        await asyncio.sleep(0)
        building -= 1

    async def attempt(entry):
        if entry.name == "r9":
            release.set()
        return OK

    stage = Stage(attempt, concurrency=1, builds=2, image=image)
    await stage.runner.run(entries(10, lambda n: "slow" if n == 0 else f"i{n}"))
    assert peak == 2 and len(stage.finished) == 10
    assert stage.started[-1] == "r0", "the others went on while its image was made"


@pytest.mark.parametrize(
    ("settings", "attempts"),
    [
        ({}, 3),
        ({"exclude": ("infrastructure",)}, 1),
        ({"exclude": ("build_error",)}, 3),
        ({"only": ("infrastructure_error", "provider")}, 3),
        ({"only": ("provider",)}, 1),
    ],
)
async def test_retry_can_be_limited_to_types_and_codes(settings, attempts):
    async def attempt(entry):
        return failed(InfrastructureError("gone", retryable=True))

    stage = Stage(attempt, retry=RetryConfig(max_retries=2, min_wait_sec=0.0, **settings))
    await stage.runner.run(entries(1))
    assert len(stage.started) == attempts


def test_a_slip_in_the_name_of_an_error_is_refused_and_a_plugin_may_have_its_own():
    with pytest.raises(ConfigurationError, match="did you mean 'sandbox_lost'"):
        RetryConfig(only=("sandbox_lots",))
    assert RetryConfig(exclude=("quota_of_my_cloud",)).exclude
