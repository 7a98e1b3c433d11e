"""One process per item, no more at once than the job allows; closing the iterator ends those that still run."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from collections.abc import AsyncIterator, Sequence

from benchflow_core.contracts import ExecutorContext, ItemResult, PlanItem
from benchflow_core.errors import ConfigurationError, InfrastructureError


async def run_items(items: Sequence[PlanItem], context: ExecutorContext) -> AsyncIterator[ItemResult]:
    worker = context.options.get("worker")
    if items and not worker:
        raise ConfigurationError("The executor needs a worker.", remedy="Add --executor-option worker=PROGRAM.")
    slots = asyncio.Semaphore(context.concurrency)
    tasks = [asyncio.create_task(_run(str(worker), item, slots)) for item in items]
    try:
        for finished in asyncio.as_completed(tasks):
            yield await finished
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _run(worker: str, item: PlanItem, slots: asyncio.Semaphore) -> ItemResult:
    async with slots:
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(worker, stdin=pipe, stdout=pipe, stderr=pipe)
        try:
            out, err = await process.communicate(json.dumps(dataclasses.asdict(item)).encode())
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
    if process.returncode == 0:
        return ItemResult(item.id, out.decode().strip())
    reason = err.decode(errors="replace").strip()[-300:]
    return ItemResult(
        item.id, None, InfrastructureError(f"The worker ended with {process.returncode}: {reason}").to_json()
    )
