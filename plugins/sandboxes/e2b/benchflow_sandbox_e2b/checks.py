"""Lines of the doctor."""

from __future__ import annotations

from benchflow_boxkit.doctor import account_checks

from benchflow_core.contracts.common import Check
from benchflow_sandbox_e2b.settings import Settings

__all__ = ["run"]


def run() -> list[Check]:
    return account_checks(Settings.of, lambda found: found.place, _ask, remedy="Check E2B_API_KEY and E2B_DOMAIN.")


async def _ask(settings: Settings) -> str:
    from benchflow_sandbox_e2b.images import Images
    from benchflow_sandbox_e2b.sizes import Size

    return f"{len(await Images(settings, Size(1, 512)).all())} templates of ours"
