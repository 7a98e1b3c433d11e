"""A job's side of a Ray cluster: which node gets an item, and what becomes of it when the node goes away."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import socket
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

import ray
from ray.exceptions import RayActorError, RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from benchflow_core.contracts import Capacity, ExecutorContext, Hear, ItemResult, PlanItem
from benchflow_core.errors import ConfigurationError, WorkerDiffers, WorkerLost, error_from_json
from benchflow_executor_ray.node import NodeWorker

__all__ = ["Cluster"]

_AT_ONCE: Final = 1000
_TEARDOWN: Final = 200.0
_DOUBT: Final = 60.0
_FRESH: Final = 5.0
"""Seconds for which the list of nodes is believed."""


@dataclass
class Node:
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
        self._owns = not ray.is_initialized()
        self._connect(context.options.get("address"))
        self._nodes: dict[str, Node] = {}
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
        except RayActorError as error:
            if node.actor is actor:  # else another item has found out before, and there is a new one
                node.actor = None
            node.doubtful_until = asyncio.get_running_loop().time() + _DOUBT
            raise WorkerLost(f"node {node.host} is lost: {_first_line(error)}") from error
        except RayError as error:
            raise WorkerLost(f"node {node.host}: {_first_line(error)}") from error
        finally:
            node.used -= item.cpus

    async def close(self) -> None:
        nodes, self._nodes = list(self._nodes.values()), {}
        await asyncio.gather(*(_end(node.actor) for node in nodes if node.actor is not None))
        await asyncio.to_thread(self._disconnect)

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
                node = Node(row["NodeID"], row["NodeManagerHostname"], has["CPU"], has.get("memory", 0) / 2**20)
                alive[node.id] = self._nodes.get(node.id, node)
        self._nodes = alive

    async def _choose(self, item: PlanItem) -> Node:
        """The one that is least full with it; one in doubt only where there is no other."""
        clock = asyncio.get_running_loop().time()
        if clock - self._seen > _FRESH or not self._nodes:
            self._seen = clock
            await asyncio.to_thread(self._look)
        if not self._nodes:
            raise WorkerLost(f"the Ray cluster has no node with CPUs{self._wanted()} any more.")
        return min(self._nodes.values(), key=lambda n: (n.doubtful_until > clock, (n.used + item.cpus) / n.cpus))

    async def _actor(self, node: Node) -> Any:
        async with node.ready:
            if node.actor is None:
                place = NodeAffinitySchedulingStrategy(node.id, soft=False)
                make: Any = ray.remote(NodeWorker).options(
                    num_cpus=0, max_concurrency=_AT_ONCE, scheduling_strategy=place, max_restarts=0
                )
                actor = make.remote(self._env)
                try:
                    await actor.ready.remote()
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
        following = asyncio.ensure_future(_read(lines, item.id, hear))
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


async def _read(lines: Any, item: str, hear: Hear) -> ItemResult:
    async for message in _messages(lines):
        if "result" in message and "id" not in message:
            return ItemResult(item, **message["result"])
        if "failed" in message:
            raise error_from_json(message["failed"])
        if "cancelled" in message:
            break
        hear(message)
    raise WorkerLost(f"the worker said nothing about the end of {item}.")


async def _messages(lines: Any) -> AsyncIterator[dict[str, Any]]:
    async for ref in lines:
        yield json.loads(await ref)


async def _end(actor: Any) -> None:
    """Its worker first: killed with it, the worker would have to notice by itself."""
    with suppress(RayError, TimeoutError):
        await asyncio.wait_for(actor.close.remote(), _TEARDOWN)
    with suppress(RayError, ValueError):
        ray.kill(actor)


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
