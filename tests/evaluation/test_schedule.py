"""The order of a job, and who may start when."""

from __future__ import annotations

from itertools import product

import pytest

from benchflow_core.evaluation.needs import fits_at_once
from benchflow_core.evaluation.schedule import Need, Queue, Slots, in_order

ITEMS = [(f"task{t}", arm, trial) for trial, t, arm in product((1, 2, 3), range(5), ("a", "b"))]


def ordered(seed, items=ITEMS):
    return in_order(items, seed, task=lambda i: i[0], arm=lambda i: i[1], trial=lambda i: i[2])


def test_the_order_is_drawn_from_the_seed_and_nothing_else():
    assert ordered(7) == ordered(7) and sorted(ordered(7)) == sorted(ITEMS)
    assert ordered(7) != ordered(8)
    assert ordered(7, ITEMS[::-1])[:0] == []


@pytest.mark.parametrize("seed", range(20))
def test_every_beginning_has_seen_tasks_arms_and_trials_about_as_often(seed):
    found = ordered(seed)
    for end in range(1, len(found) + 1):
        begun = found[:end]
        arms = [sum(1 for i in begun if i[1] == arm) for arm in "ab"]
        tasks = [sum(1 for i in begun if i[0] == f"task{t}") for t in range(5)]
        assert max(arms) - min(arms) <= 1
        assert max(tasks) - min(tasks) <= 2
        assert max(i[2] for i in begun) == (end + 9) // 10


def test_arms_do_not_always_start_in_the_same_order():
    firsts = {found[0][1] for found in (ordered(seed) for seed in range(20))}
    assert firsts == {"a", "b"}


def fill(queue, slots):
    started = []
    while (found := queue.pop(slots)) is not None:
        started.append(found)
    return started


def test_what_declared_cpus_and_memory_do_not_fit_is_not_started():
    queue, slots = Queue[int](), Slots(cpus=4, memory_mb=8000)
    for order in range(10):
        queue.push(order, Need(cpus=1.5, memory_mb=1000), order)
    started = fill(queue, slots)
    assert [item for _, item in started] == [0, 1] and slots.cpus_used == 3
    slots.give_back(started[0][0])
    assert [item for _, item in fill(queue, slots)] == [2]
    assert queue.waiting == 7


def test_memory_bounds_as_cpus_do():
    queue, slots = Queue[int](), Slots(cpus=64, memory_mb=8000)
    for order in range(10):
        queue.push(order, Need(cpus=1, memory_mb=3000), order)
    assert len(fill(queue, slots)) == 2


def test_a_large_one_is_not_overtaken_by_small_ones_forever():
    queue, slots = Queue[str](), Slots(cpus=4, memory_mb=8000)
    small, large = Need(cpus=1, memory_mb=1), Need(cpus=4, memory_mb=1)
    queue.push(0, small, "small")
    queue.push(1, large, "large")
    queue.push(2, small, "late")
    assert [item for _, item in fill(queue, slots)] == ["small"]
    slots.give_back(small)
    assert [item for _, item in fill(queue, slots)] == ["large"]


def test_one_larger_than_the_host_runs_alone():
    queue, slots = Queue[str](), Slots(cpus=2, memory_mb=1000)
    huge = Need(cpus=16, memory_mb=64000)
    queue.push(0, huge, "huge")
    queue.push(1, huge, "next")
    assert [item for _, item in fill(queue, slots)] == ["huge"]
    assert slots.crowded(huge)


def test_a_full_pool_holds_up_only_its_own():
    queue = Queue[str]()
    slots = Slots(cpus=64, memory_mb=1e6, limits={"provider:x": 1})
    for order, (pool, name) in enumerate([("x", "x1"), ("x", "x2"), ("y", "y1"), ("y", "y2")]):
        queue.push(order, Need(pools=(f"provider:{pool}",)), name)
    assert [item for _, item in fill(queue, slots)] == ["x1", "y1", "y2"]


def test_a_provider_that_asked_for_quiet_gets_it():
    queue, slots = Queue[str](), Slots(cpus=64, memory_mb=1e6)
    queue.push(0, Need(pools=("provider:x",)), "x")
    queue.push(1, Need(pools=("provider:y",)), "y")
    queue.pause("provider:x")
    assert [item for _, item in fill(queue, slots)] == ["y"]
    queue.unpause("provider:x")
    assert [item for _, item in fill(queue, slots)] == ["x"]


def test_a_concurrency_of_the_users_own_bounds_alone():
    queue, slots = Queue[int](), Slots(cpus=1, memory_mb=1, concurrency=3)
    for order in range(5):
        queue.push(order, Need(cpus=8, memory_mb=9999), order)
    assert len(fill(queue, slots)) == 3


def test_boxes_elsewhere_do_not_use_this_host():
    queue, slots = Queue[int](), Slots(cpus=1, memory_mb=1, limits={"sandbox:cloud": 4})
    need = Need(cpus=8, memory_mb=9999, on_host=False, pools=("sandbox:cloud",))
    for order in range(6):
        queue.push(order, need, order)
    assert len(fill(queue, slots)) == 4
    assert fits_at_once(slots, [need], 6) == 4


def test_undeclared_is_one_cpu_and_one_gigabyte():
    need = Need.of(None, None, on_host=True, pools=())
    assert (need.cpus, need.memory_mb) == (1.0, 1024)
    assert fits_at_once(Slots(cpus=4, memory_mb=3000), [need], 100) == 2
    assert fits_at_once(Slots(cpus=0.5, memory_mb=100), [need], 100) == 1
