"""A job's side of a Ray cluster: which node gets an item, and what becomes of it when the node goes away."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import socket
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

import ray
from ray.exceptions import RayActorError, RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from benchflow_core.contracts import Capacity, ExecutorContext, Hear, ItemResult, PlanItem
from benchflow_core.errors import ConfigurationError, ExecutorLost, WorkerDiffers, WorkerLost, error_from_json
from benchflow_executor_ray.node import NodeWorker

__all__ = ["Cluster"]

_AT_ONCE: Final = 1000
_TEARDOWN: Final = 200.0
_DOUBT: Final = 60.0
_FRESH: Final = 5.0
"""Seconds for which the list of nodes is believed."""
_SILENCE: Final = 120.0
"""Seconds after which what does not answer is given up; a node with work says something every few seconds."""
_START: Final = 300.0
"""Seconds for a node's actor."""
_T = TypeVar("_T")
_RESUME: Final = "Start it again; then: bench eval resume JOB."


class _NoAnswer(Exception):
    """A part of the cluster did not answer in time."""


@dataclass
class ClusterNode:
    """A node of the cluster, and what of it this job uses."""

    id: str
    host: str
    cpus: float
    memory_mb: float
    used: float = 0.0
    actor: Any = None
    doubtful_until: float = float("-inf")
    """It lost its worker lately: Ray takes a while to notice that a node is dead."""
    ready: asyncio.Lock = field(default_factory=asyncio.Lock)


class Cluster:
    """Connects when it is made. It leaves a cluster that it did not start as it was."""

    def __init__(self, context: ExecutorContext) -> None:
        self._env = dict(context.env)
        self._resource = context.options.get("resource")
        self._silence = _seconds(context.options.get("silence"))
        self._owns = not ray.is_initialized()
        self._connect(context.options.get("address"))
        self._nodes: dict[str, ClusterNode] = {}
        self._seen = float("-inf")
        self._look()
        if not self._nodes:
            self._disconnect()
            raise ConfigurationError(f"the Ray cluster has no node with CPUs{self._wanted()}.")

    def capacity(self) -> Capacity | None:
        nodes = self._nodes.values()
        return Capacity(sum(node.cpus for node in nodes), sum(node.memory_mb for node in nodes))

    async def run(self, item: PlanItem, hear: Hear) -> ItemResult:
        node = await self._choose(item)
        node.used += item.cpus
        actor = None
        try:
            actor = await self._actor(node)
            return await self._follow(actor, item, hear)
        except (RayActorError, _NoAnswer) as error:
            if node.actor is actor:  # else another item has found out before, and there is a new one
                node.actor = None
            node.doubtful_until = asyncio.get_running_loop().time() + _DOUBT
            if actor is not None:
                _aside(lambda: ray.kill(actor))  # where it lives after all, what it runs must not go on unseen
            raise WorkerLost(f"node {node.host} is lost: {_first_line(error)}") from error
        except RayError as error:
            raise WorkerLost(f"node {node.host}: {_first_line(error)}") from error
        finally:
            node.used -= item.cpus

    async def close(self) -> None:
        nodes, self._nodes = list(self._nodes.values()), {}
        await asyncio.gather(*(_end(node.actor) for node in nodes if node.actor is not None))
        with suppress(_NoAnswer):
            await _answer(_aside(self._disconnect), _TEARDOWN)

    # --- parts -----------------------------------------------------------------------------------------

    def _connect(self, address: str | None) -> None:
        if not self._owns:
            return
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        try:
            _join(address)
        except Exception as error:  # Ray raises plain ones here
            raise ConfigurationError(
                f"Ray cannot be reached{f' at {address}' if address else ''}: {_first_line(error)}",
                remedy="Start one with: ray start --head",
            ) from error

    def _disconnect(self) -> None:
        if self._owns:
            ray.shutdown()

    def _wanted(self) -> str:
        return f" and the resource '{self._resource}'" if self._resource else ""

    def _look(self) -> None:
        """Blocking, as Ray's list of nodes is."""
        alive = {}
        for row in ray.nodes():
            has = row["Resources"]
            if row["Alive"] and has.get("CPU") and (self._resource is None or has.get(self._resource)):
                node = ClusterNode(row["NodeID"], row["NodeManagerHostname"], has["CPU"], has.get("memory", 0) / 2**20)
                alive[node.id] = self._nodes.get(node.id, node)
        self._nodes = alive

    async def _choose(self, item: PlanItem) -> ClusterNode:
        """The one that is least full with it; one in doubt only where there is no other."""
        loop = asyncio.get_running_loop()
        clock = end = loop.time()
        end += self._silence
        while clock - self._seen > _FRESH or not self._nodes:
            try:
                await _answer(_aside(self._look), self._silence)
            except (_NoAnswer, RayError) as error:
                raise ExecutorLost(f"the Ray cluster is lost: {_first_line(error)}.", remedy=_RESUME) from error
            self._seen = clock = loop.time()
            if not self._nodes and clock > end:
                raise ExecutorLost(f"the Ray cluster has no node with CPUs{self._wanted()} any more.", remedy=_RESUME)
            if not self._nodes:
                await asyncio.sleep(1.0)
        return min(self._nodes.values(), key=lambda n: (n.doubtful_until > clock, (n.used + item.cpus) / n.cpus))

    async def _actor(self, node: ClusterNode) -> Any:
        async with node.ready:
            if node.actor is None:
                place = NodeAffinitySchedulingStrategy(node.id, soft=False)
                make: Any = ray.remote(NodeWorker).options(
                    num_cpus=0, max_concurrency=_AT_ONCE, scheduling_strategy=place, max_restarts=0
                )
                actor = make.remote(self._env)
                try:
                    await _answer(actor.ready.remote(), max(_START, self._silence))
                except RayActorError as error:
                    if not error.actor_init_failed:
                        raise
                    raise WorkerDiffers(
                        f"node {node.host} cannot run workers: {_first_line(error.__cause__ or error)}",
                        remedy="Install there what bench plugins list --requirements says here.",
                    ) from error
                node.actor = actor
            return node.actor

    async def _follow(self, actor: Any, item: PlanItem, hear: Hear) -> ItemResult:
        lines = actor.run.options(num_returns="streaming").remote(json.dumps(item.to_json()))
        following = asyncio.ensure_future(_read(lines, item.id, hear, self._silence))
        try:
            return await asyncio.shield(following)
        except asyncio.CancelledError as stop:
            actor.cancel.remote(item.id, str(stop.args[0]) if stop.args else "stopped by the user.")
            end = asyncio.get_running_loop().time() + _TEARDOWN
            while not following.done() and (left := end - asyncio.get_running_loop().time()) > 0:
                with suppress(asyncio.CancelledError):
                    await asyncio.wait([following], timeout=left)
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)
            raise


def _refuse_deaf(address: str) -> None:
    """Ray itself waits for minutes where nobody listens."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdigit():
        socket.create_connection((host, int(port)), timeout=10).close()


def _join(address: str | None) -> None:
    _refuse_deaf(address or os.environ.get("RAY_ADDRESS", ""))
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    try:
        ray.init(address=address or "auto", **quiet)
    except ConnectionError:
        if address is not None or "RAY_ADDRESS" in os.environ:
            raise
        ray.init(address="local", include_dashboard=False, **quiet)


async def _read(lines: Any, item: str, hear: Hear, silence: float) -> ItemResult:
    async for message in _messages(lines, silence):
        if "result" in message and "id" not in message:
            return ItemResult(item, **message["result"])
        if "failed" in message:
            raise error_from_json(message["failed"])
        if "cancelled" in message:
            break
        hear(message)
    raise WorkerLost(f"the worker said nothing about the end of {item}.")


async def _messages(lines: Any, silence: float) -> AsyncIterator[dict[str, Any]]:
    while True:
        try:
            ref = await _answer(anext(lines), silence)
        except StopAsyncIteration:
            return
        yield json.loads(await _answer(ref, silence))


async def _answer(asked: Awaitable[_T], seconds: float) -> _T:
    """Wait for a part of the cluster. Only seconds in which this process was awake itself are counted."""
    work = asyncio.ensure_future(asked)
    try:
        for _ in range(round(seconds)):
            if (await asyncio.wait([work], timeout=1.0))[0]:
                return work.result()
    finally:
        work.cancel()
    raise _NoAnswer(f"it has not answered for {seconds:g} s")


def _aside(call: Callable[[], None]) -> asyncio.Future[None]:
    """Call it in a thread of its own: a call that never returns holds up nobody's exit."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()

    def settle(error: Exception | None) -> None:
        if not done.done():
            done.set_exception(error) if error else done.set_result(None)
            done.exception()

    def run() -> None:
        error = None
        try:
            call()
        except Exception as raised:
            error = raised
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(settle, error)

    threading.Thread(target=run, daemon=True).start()
    return done


def _seconds(text: str | None) -> float:
    try:
        seconds = float(text) if text is not None else _SILENCE
    except ValueError:
        seconds = 0.0
    if not seconds >= 10:
        raise ConfigurationError(f"executor option silence={text}: expected seconds, at least 10.")
    return seconds


async def _end(actor: Any) -> None:
    """Its worker first: killed with it, the worker would have to notice by itself."""
    with suppress(RayError, TimeoutError):
        await asyncio.wait_for(actor.close.remote(), _TEARDOWN)
    with suppress(RayError, ValueError):
        ray.kill(actor)


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
