"""Which rollout may start when: a seeded order, and room for each before it begins.

Nothing here grows with the size of a job: work waits in one heap per kind of need, and there are few kinds.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import field
from typing import Generic, TypeVar

from benchflow_core.quick import dataclass

__all__ = ["Need", "Queue", "Slots", "in_order"]

T = TypeVar("T")
_UNDECLARED_CPUS = 1.0
_UNDECLARED_MEMORY_MB = 1024


def in_order(
    items: Sequence[T],
    seed: int,
    *,
    task: Callable[[T], Hashable],
    arm: Callable[[T], Hashable],
    trial: Callable[[T], int],
) -> list[T]:
    """Trial by trial over shuffled tasks, the arms of a task side by side and in changing order.

    However early a job ends, every task, arm and trial was seen about as often, and arms met the same conditions.
    """
    groups: dict[tuple[int, Hashable], list[T]] = {}
    for item in items:
        groups.setdefault((trial(item), task(item)), []).append(item)
    ordered: list[T] = []
    for number in sorted({key[0] for key in groups}):
        chance = random.Random(f"{seed}/{number}")
        tasks = [key for key in groups if key[0] == number]
        chance.shuffle(tasks)
        for key in tasks:
            group = sorted(groups[key], key=lambda i: str(arm(i)))
            chance.shuffle(group)
            ordered += group
    return ordered


@dataclass(frozen=True, slots=True)
class Need:
    """What one rollout takes while it runs."""

    cpus: float = _UNDECLARED_CPUS
    memory_mb: int = _UNDECLARED_MEMORY_MB
    on_host: bool = True
    """Its box uses the CPUs and memory of this machine."""
    pools: tuple[str, ...] = ()
    """Named limits it counts against: `sandbox:NAME`, `provider:NAME`, `agent:NAME`."""

    @classmethod
    def of(cls, cpus: float | None, memory_mb: int | None, *, on_host: bool, pools: Iterable[str]) -> Need:
        """A task that declares nothing is taken to need one CPU and one gigabyte."""
        return cls(
            _UNDECLARED_CPUS if cpus is None else cpus,
            _UNDECLARED_MEMORY_MB if memory_mb is None else memory_mb,
            on_host,
            tuple(pools),
        )


@dataclass
class Slots:
    """The room there is. With a `concurrency` of the user's own, that alone bounds the host."""

    cpus: float
    memory_mb: float
    concurrency: int | None = None
    limits: Mapping[str, int] = field(default_factory=dict)
    running: int = 0
    on_host: int = 0
    cpus_used: float = 0.0
    memory_used: float = 0.0
    used: dict[str, int] = field(default_factory=dict)

    def room_on_host(self, need: Need) -> bool:
        """A task larger than the whole host runs alone."""
        if self.concurrency is not None:
            return self.running < self.concurrency
        if not need.on_host or self.on_host == 0:
            return True
        return self.cpus_used + need.cpus <= self.cpus and self.memory_used + need.memory_mb <= self.memory_mb

    def room_in_pools(self, need: Need) -> bool:
        return all(self.used.get(p, 0) < self.limits[p] for p in need.pools if p in self.limits)

    def take(self, need: Need, sign: int = 1) -> None:
        self.running += sign
        for pool in need.pools:
            self.used[pool] = self.used.get(pool, 0) + sign
        if need.on_host:
            self.on_host += sign
            self.cpus_used += sign * need.cpus
            self.memory_used += sign * need.memory_mb

    def give_back(self, need: Need) -> None:
        self.take(need, -1)

    def crowded(self, need: Need) -> bool:
        """More was promised to running rollouts than the host has."""
        return need.on_host and (self.cpus_used > self.cpus or self.memory_used > self.memory_mb)


class Queue(Generic[T]):
    """Waiting work in order. Nobody overtakes the oldest where the host is full; a full pool holds up only its own."""

    def __init__(self) -> None:
        self._heaps: dict[Need, list[tuple[int, T]]] = {}
        self._paused: set[str] = set()
        self.waiting = 0

    def push(self, order: int, need: Need, item: T) -> None:
        """`order` must be different for each item."""
        heapq.heappush(self._heaps.setdefault(need, []), (order, item))
        self.waiting += 1

    def pause(self, pool: str) -> None:
        """Nothing of this pool starts until `unpause`: its provider asked for quiet."""
        self._paused.add(pool)

    def unpause(self, pool: str) -> None:
        self._paused.discard(pool)

    def pop(self, slots: Slots) -> tuple[Need, T] | None:
        """The oldest that may start now; its room is taken."""
        heads = sorted(((heap[0][0], need) for need, heap in self._heaps.items() if heap), key=lambda head: head[0])
        for _, need in heads:
            if not self._paused.isdisjoint(need.pools) or not slots.room_in_pools(need):
                continue
            if not slots.room_on_host(need):
                return None
            slots.take(need)
            self.waiting -= 1
            return need, heapq.heappop(self._heaps[need])[1]
        return None
