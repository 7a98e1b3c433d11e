"""The plugin: where rollouts run."""

from __future__ import annotations

from benchflow_core.contracts import Executor, ExecutorContext, ExecutorSpec
from benchflow_core.hookspecs import hookimpl


def open_executor(context: ExecutorContext) -> Executor:
    from {{module}}.workers import Workers

    return Workers(context)


@hookimpl
def benchflow_executor() -> ExecutorSpec:
    return ExecutorSpec(
        summary="a worker process per rollout",
        open=open_executor,
        options={"python": "The Python that workers run on; without it this one."},
    )
