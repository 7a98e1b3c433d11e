"""Going on with a job: what is finished stays, what is not is run. Nothing is repeated by accident."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

from benchflow_core.errors import ConfigurationError
from benchflow_core.evaluation.budget import Spent, spent_of
from benchflow_core.evaluation.folders import cancelled, earlier_attempts, read_result
from benchflow_core.evaluation.items import Item
from benchflow_core.evaluation.jobfile import Entry, JobRecord
from benchflow_core.plugins import Loaded
from benchflow_core.results.files import read_json
from benchflow_core.rollout.leases import reap_dead
from benchflow_core.settings.models import RetryConfig

__all__ = ["Again", "check_drift", "reap_left", "spent_before", "unfinished"]

Again = Literal["nothing", "errors"]
"""Which finished rollouts run once more: none, or those that could not be scored."""


def check_drift(record: JobRecord, items: Sequence[Item], *, allow: bool, warn: Callable[[str], None]) -> bool:
    """Refuse to mix what is not the same, unless it is allowed; then it is said, and stamped."""
    changes = record.drifted(items)
    if not changes:
        return False
    if not allow:
        more = f" and {len(changes) - 4} more" if len(changes) > 4 else ""
        raise ConfigurationError(
            f"not the same as when job {record.job_name} began: {'; '.join(changes[:4])}{more}.",
            remedy="Put it back as it was, or add --allow-drift; results then say so.",
            details={"drift": changes},
        )
    for line in changes:
        warn(f"drift: {line}")
    record.settle(changes, items)
    return True


async def reap_left(sandboxes: Sequence[Loaded], warn: Callable[[str], None]) -> None:
    """Boxes that a killed run of whatever job left in these sandboxes: nobody owns them any more."""
    for row in await reap_dead(sandboxes, dry_run=False):
        if row["error"]:
            warn(f"{row['sandbox']} {row['kind']} {row['id']} could not be removed: {row['error']}")


def unfinished(job_dir: Path, entries: Sequence[Entry], retry: RetryConfig, again: Again) -> list[Entry]:
    """The rollouts still to run, each knowing its earlier attempts."""
    found = []
    for entry in entries:
        result = read_result(job_dir, entry.name)
        entry.failures = _failures(job_dir, entry.name, retry)
        if result is not None and _stands(result, entry.failures, retry, again):
            continue
        if (job_dir / entry.name).exists() or entry.failures:
            entry.attempt = 2  # an earlier one has to be set aside; its number is settled then
        if again == "errors":
            entry.failures = 0
        elif result is not None and retry.covers(result):
            entry.failures += 1
        found.append(entry)
    return found


def _stands(result: dict[str, Any], failures: int, retry: RetryConfig, again: Again) -> bool:
    """Whether a finished rollout is final."""
    if result.get("rewards") is not None:
        return True
    if cancelled(result):
        return False
    if again == "errors":
        return not (result.get("error") or result.get("verifier_error"))
    return not (retry.covers(result) and failures < retry.max_retries)


def _failures(job_dir: Path, name: str, retry: RetryConfig) -> int:
    """Earlier attempts that failed on their own account; those that were interrupted do not count."""
    results = [_read(path) for path in earlier_attempts(job_dir, name)]
    return sum(1 for r in results if r and retry.covers(r))


def spent_before(job_dir: Path, names: Sequence[str]) -> Spent:
    """Tokens and money of everything that was tried so far."""
    spent = Spent()
    for name in names:
        for path in (job_dir / name, *earlier_attempts(job_dir, name)):
            spent += spent_of(_read(path) or {})
    return spent


def _read(folder: Path) -> dict[str, Any] | None:
    try:
        return dict(read_json(folder / "result.json"))
    except (OSError, ValueError, TypeError):
        return None
