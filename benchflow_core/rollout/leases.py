"""What exists in the sandboxes, and removing what a dead run left."""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchflow_core.contracts.sandboxes import Lease
from benchflow_core.dotenv import user_env
from benchflow_core.errors import BenchflowError
from benchflow_core.plugins import Loaded
from benchflow_core.results.layout import cache_dir
from benchflow_core.rollout.host import private_leftovers
from benchflow_core.rollout.state import abandoned

__all__ = ["all_leases", "reap_dead"]


async def all_leases(sandboxes: Sequence[Loaded]) -> tuple[list[dict[str, Any]], list[BenchflowError]]:
    """And why some sandboxes could not be asked: the others are shown all the same."""
    rows: list[dict[str, Any]] = []
    failures: list[BenchflowError] = []
    for sandbox in sandboxes:
        if sandbox.spec.available().ok:
            try:
                rows += [{"sandbox": sandbox.name, **asdict(lease)} async for lease in sandbox.spec.list_leases()]
            except BenchflowError as error:
                failures.append(error)
    return rows, failures


async def reap_dead(sandboxes: Sequence[Loaded], *, dry_run: bool) -> list[dict[str, Any]]:
    """Every lease whose owner is dead, or that outlived its term where that cannot be known; and the kept state of
    rollouts that were deleted."""
    cache = cache_dir(user_env())
    rows = [_remove(folder, dry_run) for folder in private_leftovers(cache)]
    for sandbox in sandboxes:
        if sandbox.spec.reap is None or not sandbox.spec.available().ok:
            continue
        try:
            leases = [lease async for lease in sandbox.spec.list_leases()]
        except BenchflowError as error:
            rows.append({"sandbox": sandbox.name, "kind": "boxes", "id": "of dead runs", "error": error.message})
            continue
        for lease in leases:
            if _dead(lease) or abandoned(lease, cache):
                rows.append(
                    {
                        "sandbox": sandbox.name,
                        "kind": lease.kind,
                        "id": lease.id,
                        "error": await _reap(sandbox, lease, dry_run),
                    }
                )
    return rows


def _remove(folder: Path, dry_run: bool) -> dict[str, Any]:
    if not dry_run:
        shutil.rmtree(folder, ignore_errors=True)
    left = not dry_run and folder.exists()
    return {"sandbox": "host", "kind": "folder", "id": str(folder), "error": "it is still there" if left else None}


def _dead(lease: Lease) -> bool:
    if lease.owner_alive is not None:
        return not lease.owner_alive
    return lease.expires_at is not None and lease.expires_at < time.time()


async def _reap(sandbox: Loaded, lease: Lease, dry_run: bool) -> str | None:
    if dry_run:
        return None
    try:
        await sandbox.spec.reap(lease)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None
