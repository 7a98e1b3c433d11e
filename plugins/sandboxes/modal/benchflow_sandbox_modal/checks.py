"""What the doctor asks of an account."""

from __future__ import annotations

from benchflow_sandbox_modal.client import ModalClient
from benchflow_sandbox_modal.failures import translated
from benchflow_sandbox_modal.settings import ModalSettings

__all__ = ["describe"]


async def describe(settings: ModalSettings) -> str:
    client = ModalClient(settings)
    try:
        with translated("the account does not answer"):
            await (await client.sdk()).hello.aio()
    finally:
        await client.close()
    return f"app {settings.app}, environment {settings.environment or 'default'}"
