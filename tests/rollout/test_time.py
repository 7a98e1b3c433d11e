"""Time that is nobody's: suspended hosts, frozen processes, and deadlines that give it back."""

from __future__ import annotations

import asyncio

import pytest

from benchflow_core.errors import AgentTimeout
from benchflow_core.rollout.credit import _backed_off
from benchflow_core.rollout.deadline import deadline
from benchflow_core.rollout.hostwatch import HostWatch, host_cpus, host_memory_mb


class Clocks:
    def __init__(self) -> None:
        self.monotonic, self.boot = 100.0, 500.0

    def pass_time(self, seconds: float) -> None:
        self.monotonic += seconds
        self.boot += seconds


@pytest.fixture
def clocks():
    return Clocks()


@pytest.fixture
def watch(clocks):
    return HostWatch(lambda: clocks.monotonic, lambda: clocks.boot)


def test_ordinary_time_is_not_lost(clocks, watch):
    for _ in range(100):
        clocks.pass_time(1.2)
        watch.beat()
    clocks.pass_time(3)
    assert watch.lost() == 0


def test_a_suspend_shows_as_a_step_between_the_clocks(clocks, watch):
    clocks.pass_time(1)
    clocks.boot += 3600
    assert watch.lost() == pytest.approx(3600)
    watch.beat()
    clocks.pass_time(1)
    watch.beat()
    assert watch.lost() == pytest.approx(3600), "counted once"


def test_a_freeze_shows_as_a_gap_between_beats_even_before_the_next_beat(clocks, watch):
    watch.beat()
    mark = watch.mark()
    clocks.pass_time(61)
    assert watch.lost() == pytest.approx(60)
    watch.beat()
    assert watch.lost() == pytest.approx(60)
    assert watch.since(mark)["stood_still_sec"] == pytest.approx(60)


def test_a_watch_that_nobody_started_finds_no_freeze(clocks, watch):
    clocks.pass_time(3600)
    assert watch.lost() == 0


def test_the_host_says_what_it_has():
    assert host_cpus() >= 1 and host_memory_mb() > 0


def late():
    return AgentTimeout("late")


async def test_a_deadline_without_credit_ends_the_body():
    async def none() -> float:
        return 0.0

    with pytest.raises(AgentTimeout):
        async with deadline(0.05, late, none):
            await asyncio.Event().wait()


async def test_credited_time_is_given_back_and_no_more():
    asked = []

    async def credit() -> float:
        asked.append(1)
        return 0.3

    loop = asyncio.get_running_loop()
    started = loop.time()
    with pytest.raises(AgentTimeout):
        async with deadline(0.05, late, credit):
            await asyncio.Event().wait()
    assert loop.time() - started >= 0.35 and len(asked) >= 2
    async with deadline(0.05, late, credit):
        await asyncio.sleep(0.15)


async def test_a_time_out_of_the_bodys_own_goes_through():
    async def none() -> float:
        return 0.0

    with pytest.raises(TimeoutError):
        async with deadline(60, late, none):
            raise TimeoutError("its own")


def test_refused_calls_and_the_pause_after_them_are_not_the_agents():
    calls = [(10.0, 11.0, False), (12.0, 13.0, True), (43.0, 44.0, True), (50.0, 55.0, False)]
    assert _backed_off(list(calls), 60.0) == pytest.approx(31 + 7)
    assert _backed_off([(10.0, 11.0, True)], 20.0) == pytest.approx(10)
    assert _backed_off([(10.0, 11.0, True)], 9999.0) == pytest.approx(61), "one that gave up is not waiting"
