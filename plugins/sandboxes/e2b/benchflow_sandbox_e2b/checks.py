"""What the doctor asks of an account."""

from __future__ import annotations

from benchflow_sandbox_e2b.leases import list_templates
from benchflow_sandbox_e2b.settings import E2bSettings

__all__ = ["describe"]


async def describe(settings: E2bSettings) -> str:
    return f"{len(await list_templates(settings))} templates of ours"
