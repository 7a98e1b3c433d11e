"""The plugin: how a plan is run."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from benchflow_core.contracts import ExecutorContext, ExecutorSpec, ItemResult, PlanItem
from benchflow_core.hookspecs import hookimpl


async def run(items: Sequence[PlanItem], context: ExecutorContext) -> AsyncIterator[ItemResult]:
    from {{module}}.workers import run_items

    async for result in run_items(items, context):
        yield result


@hookimpl
def benchflow_executor() -> ExecutorSpec:
    return ExecutorSpec(summary="a worker program per rollout", run=run)
