"""Lines of the doctor."""

from __future__ import annotations

from benchflow_boxkit.doctor import account_checks

from benchflow_core.contracts.common import Check
from benchflow_sandbox_modal.settings import Settings

__all__ = ["run"]


def run() -> list[Check]:
    check = "Check MODAL_TOKEN_ID, MODAL_TOKEN_SECRET and the network."
    return account_checks(Settings.of, lambda found: found.url, _ask, remedy=check)


async def _ask(settings: Settings) -> str:
    from benchflow_sandbox_modal.client import Client
    from benchflow_sandbox_modal.failures import translated

    client = Client(settings)
    try:
        with translated("the account does not answer"):
            await (await client.sdk()).hello.aio()
    finally:
        await client.close()
    return f"app {settings.app}, environment {settings.environment or 'default'}"
