"""The plugin: a pool of worker processes."""

from __future__ import annotations

from benchflow_core.contracts import Executor, ExecutorContext, ExecutorSpec
from benchflow_core.hookspecs import hookimpl


def _open(context: ExecutorContext) -> Executor:
    from benchflow_executor_processes.pool import ProcessPool

    return ProcessPool(context)


@hookimpl
def benchflow_executor() -> ExecutorSpec:
    return ExecutorSpec(
        summary="a pool of worker processes on this host",
        open=_open,
        options={"workers": "How many processes; without it one per CPU, and no more than rollouts at a time."},
    )
