"""The end of a rollout, which always comes: whatever was raised, its box goes and its result is written."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from benchflow_core.contracts.sandboxes import Sandbox
from benchflow_core.errors import BenchflowError, PluginFailed

if TYPE_CHECKING:
    from benchflow_core.rollout.rollout import Rollout

__all__ = ["clean_shielded", "end_box", "leave_features"]

_SECONDS = 120.0


async def end_box(rollout: Rollout, box: Sandbox) -> None:
    """A plugin that cannot end its box keeps neither a verdict nor the rest of the cleaning up from being."""
    try:
        await box.stop()
    except PluginFailed as error:
        if rollout.result.rewards is None:
            rollout.fail(error)
        rollout.notice(error.message)


async def leave_features(rollout: Rollout) -> None:
    """Leave the lifetimes that are still open. A feature that fails there takes no verdict away."""
    for name in ("agent", "box"):
        try:
            await rollout.features.leave(name)
        except (BenchflowError, OSError) as error:
            said = error if isinstance(error, BenchflowError) else BenchflowError(str(error))
            if rollout.result.rewards is None:
                rollout.fail(said)
            rollout.notice(said.message)


async def clean_shielded(rollout: Rollout) -> None:
    """Cleaning up is not cut short by a second cancellation; only by its own deadline."""
    work = asyncio.ensure_future(asyncio.wait_for(rollout.cleanup(), _SECONDS))
    while not work.done():
        try:
            await asyncio.shield(work)
        except asyncio.CancelledError:
            continue
        except BenchflowError as error:
            rollout.fail(error)
        except TimeoutError:
            rollout.fail(BenchflowError(f"cleaning up took longer than {_SECONDS:.0f} s."))
    rollout.write_missing_result()
