"""Lines of the doctor."""

from __future__ import annotations

from benchflow_boxkit.doctor import account_checks

from benchflow_core.contracts.common import Check
from benchflow_sandbox_daytona.settings import Settings

__all__ = ["run"]


def run() -> list[Check]:
    return account_checks(
        Settings.of, lambda found: found.url, _ask, remedy="Check DAYTONA_API_KEY and DAYTONA_API_URL."
    )


async def _ask(settings: Settings) -> str:
    from benchflow_sandbox_daytona.client import Client
    from benchflow_sandbox_daytona.failures import translated

    client = Client(settings)
    try:
        with translated("the account does not answer"):
            found = await client.snapshots.get_all_snapshots(page=1, limit=1)
    finally:
        await client.close()
    return f"target {settings.target or 'of the organization'}, {found.total} snapshots"
