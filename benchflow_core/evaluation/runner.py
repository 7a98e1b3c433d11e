"""The scheduling loop of a job: starts what may start, tries again what is worth it, and knows when to stop."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any

from benchflow_core.evaluation.budget import Budget, Spent, spent_of
from benchflow_core.evaluation.jobfile import Entry
from benchflow_core.evaluation.schedule import Need, Queue, Slots
from benchflow_core.results.clock import Stopwatch
from benchflow_core.settings.models import RetryConfig

__all__ = ["Runner", "Tell"]

Tell = Callable[[str, Mapping[str, Any]], None]
_FATAL = frozenset({"credential_refused", "executor_lost", "unknown_model", "worker_differs"})
_AHEAD = 4
"""Images that are made before their first rollout can start."""
_PATIENCE = 2.0
"""Seconds at the start of a job in which the order is kept although there is room: most images are there already."""


class Runner:
    """One per run of a job. A rollout in back-off, or waiting for its image, holds no room."""

    def __init__(
        self,
        *,
        attempt: Callable[[Entry], Awaitable[dict[str, Any]]],
        image: Callable[[Entry], Awaitable[object]],
        finished: Callable[[Entry, dict[str, Any]], None],
        need: Callable[[Entry], Need],
        slots: Slots,
        retry: RetryConfig,
        budget: Budget,
        spent: Spent,
        tell: Tell,
        builds: int,
        strict: bool = False,
    ) -> None:
        self._attempt, self._image, self._finished, self._need = attempt, image, finished, need
        self.slots, self._retry, self._budget, self._tell = slots, retry, budget, tell
        self.spent = spent
        self.running_spent = Spent()
        self.stopping: str | None = None
        self._builds = builds
        self._strict = strict
        """Nothing starts before everything earlier has ended, not even while one waits for another try."""
        self._waiting = 0
        self._queue: Queue[Entry] = Queue()
        self._tasks: set[asyncio.Task[None]] = set()
        self._helpers: set[asyncio.Task[None]] = set()
        self._timers: set[asyncio.TimerHandle] = set()
        self._unstarted: set[str] = set()
        self._unready: dict[str, int] = {}
        """Images that are not made yet, and the place of the first rollout that waits for each."""
        self._held: list[tuple[int, Entry]] = []
        """Their image is there, but it is not their turn: earlier ones still wait for theirs."""
        self._ahead = asyncio.Semaphore(_AHEAD + builds)
        self._watch = Stopwatch()
        self._left = 0
        self._defect: BaseException | None = None
        self._over = asyncio.Event()

    async def run(self, entries: Sequence[Entry]) -> None:
        """Until everything is finished, or nothing more may start and nothing runs. Cancelling tears all of it down."""
        self._left = len(entries)
        by_image: dict[str, list[Entry]] = {}
        for entry in entries:
            by_image.setdefault(entry.image, []).append(entry)
        self._unstarted = set(by_image)
        self._unready = {image: group[0].order for image, group in by_image.items()}
        groups = iter(by_image.values())
        try:
            for _ in range(min(self._builds, len(by_image))):
                self._help(self._prepare(groups))
            if self._budget.max_time is not None:
                self._later(max(self._budget.max_time, 0.0), self._pump)
            self._later(_PATIENCE, lambda: None)
            self._pump()
            await self._over.wait()
        finally:
            await self._end()
        if self._defect is not None:
            raise self._defect

    def drain(self, reason: str) -> None:
        """Start nothing more; what runs is finished."""
        if self.stopping is None:
            self.stopping = reason = reason.rstrip(".")  # it becomes a part of longer sentences
            self._tell("draining", {"reason": reason, "running": len(self._tasks), "left": self._left})
            self._pump()

    @property
    def left(self) -> int:
        """Rollouts without an end of their own."""
        return self._left

    def check_budget(self) -> None:
        """With what running rollouts used so far."""
        if self._budget.limited and self.stopping is None:
            reason = self._budget.exceeded(self.spent + self.running_spent, self._watch.seconds)
            if reason is not None:
                self.drain(reason)

    # --- parts -----------------------------------------------------------------------------------------

    def _pump(self) -> None:
        """Start whatever may start now."""
        self.check_budget()
        while self.stopping is None and not self._blocked and (found := self._next()) is not None:
            need, entry = found
            if entry.image in self._unstarted:
                self._unstarted.discard(entry.image)
                self._ahead.release()
            task = asyncio.create_task(self._run(need, entry), name=entry.name)
            self._tasks.add(task)
            task.add_done_callback(self._ended)
        if not self._tasks and (self._left == 0 or self.stopping is not None):
            self._over.set()

    def _next(self) -> tuple[Need, Entry] | None:
        """Rather one out of turn than room that stays empty while an image is made for long."""
        if not self._strict and not self._queue.waiting and self._held and self._watch.seconds >= _PATIENCE:
            self._release(self._held[0][0] + 1)
        return self._queue.pop(self.slots)

    @property
    def _blocked(self) -> bool:
        return self._strict and bool(self._tasks or self._waiting)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._note_defect(task)
        self._pump()

    def _note_defect(self, task: asyncio.Task[None]) -> None:
        """What no rollout can cause. The others are finished before it is raised."""
        if not task.cancelled() and task.exception() is not None and self._defect is None:
            self._defect = task.exception()
            self.drain(f"defect in the scheduler: {type(self._defect).__name__}: {self._defect}")

    async def _prepare(self, groups: Iterator[list[Entry]]) -> None:
        """Make images in order, a few ahead. A failure is left for the rollouts to meet: theirs is the record."""
        for group in groups:
            await self._ahead.acquire()
            await self._image(group[0])
            del self._unready[group[0].image]
            for entry in group:
                heapq.heappush(self._held, (entry.order, entry))
            self._release(next(iter(self._unready.values()), None))
            self._pump()

    def _release(self, before: int | None) -> None:
        """Let those wait for room whose turn it is."""
        while self._held and (before is None or self._held[0][0] < before):
            order, entry = heapq.heappop(self._held)
            self._queue.push(order, self._need(entry), entry)

    async def _run(self, need: Need, entry: Entry) -> None:
        try:
            result = await self._attempt(entry)
        finally:
            self.slots.give_back(need)
        self.spent += spent_of(result)
        code = (result.get("error_info") or {}).get("code")
        if code in _FATAL:
            self.drain(f"{result['error']}")
        if self._retry.covers(result) and entry.failures < self._retry.max_retries and self.stopping is None:
            entry.failures += 1
            self._again(need, entry, result)
            return
        self._left -= 1
        self._finished(entry, result)

    def _again(self, need: Need, entry: Entry, result: Mapping[str, Any]) -> None:
        """Back in its old place of the order after a wait. Where the provider asked for quiet, all of its wait."""
        info = result["error_info"]
        wait = max(self._retry.wait(entry.failures), float(info["details"].get("retry_after") or 0.0))
        told = {"rollout": entry.name, "arm": entry.item.arm, "attempt": entry.attempt}
        self._tell("retry", {**told, "wait": wait, "error": result["error"]})
        self._waiting += 1

        def back() -> None:
            self._waiting -= 1
            self._queue.push(entry.order, need, entry)

        self._later(wait, back)
        if info["code"] == "provider_rate_limited":
            for pool in (p for p in need.pools if p.startswith("provider:")):
                self._queue.pause(pool)
                self._later(wait, lambda pool=pool: self._queue.unpause(pool))  # type: ignore[misc]

    def _later(self, seconds: float, call: Callable[[], None]) -> None:
        def fire() -> None:
            self._timers.discard(timer)
            call()
            self._pump()

        timer = asyncio.get_running_loop().call_later(seconds, fire)
        self._timers.add(timer)

    def _help(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._helpers.add(task)
        task.add_done_callback(self._helped)

    def _helped(self, task: asyncio.Task[None]) -> None:
        self._helpers.discard(task)
        self._note_defect(task)

    async def _end(self) -> None:
        self.stopping = self.stopping or ("stopped" if self._left else None)
        for timer in self._timers:
            timer.cancel()
        tasks = [*self._helpers, *self._tasks]
        for task in tasks:
            task.cancel()
        while tasks := [t for t in tasks if not t.done()]:
            try:
                await asyncio.wait(tasks)
            except asyncio.CancelledError:  # a third Ctrl-C: tearing down goes on, it has its own deadline
                continue
