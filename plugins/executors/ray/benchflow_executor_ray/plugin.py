"""The plugin: a worker on each node of a Ray cluster."""

from __future__ import annotations

from benchflow_core.contracts import Availability, Executor, ExecutorContext, ExecutorSpec
from benchflow_core.hookspecs import hookimpl


def _open(context: ExecutorContext) -> Executor:
    from benchflow_executor_ray.cluster import Cluster

    return Cluster(context)


def _available() -> Availability:
    from importlib.util import find_spec

    if find_spec("ray") is None:
        return Availability(False, "the ray package is not installed", "pip install ray")
    return Availability(True)


@hookimpl
def benchflow_executor() -> ExecutorSpec:
    return ExecutorSpec(
        summary="the nodes of a Ray cluster",
        open=_open,
        on_host=False,
        options={
            "address": "The cluster, as ray.init takes it; without it RAY_ADDRESS, a running one, or one started here.",
            "resource": "Only nodes that have this custom resource.",
            "silence": "Seconds after which a node that says nothing is given up: 120.",
        },
        available=_available,
    )
