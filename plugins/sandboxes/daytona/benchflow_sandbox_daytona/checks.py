"""What the doctor asks of an account."""

from __future__ import annotations

from benchflow_sandbox_daytona.client import DaytonaClient
from benchflow_sandbox_daytona.failures import translated
from benchflow_sandbox_daytona.settings import DaytonaSettings

__all__ = ["describe"]


async def describe(settings: DaytonaSettings) -> str:
    client = DaytonaClient(settings)
    try:
        with translated("the account does not answer"):
            found = await client.snapshots.get_all_snapshots(page=1, limit=1)
    finally:
        await client.close()
    return f"target {settings.target or 'of the organization'}, {found.total} snapshots"
