"""Worlds: a built-in scenario by name, or a task's own JSON file."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

from benchflow_claw_kit.service import Service
from benchflow_claw_kit.store import DEFAULT_EPOCH_MS, Store, StoreError

__all__ = ["parse_instant", "seed"]


def parse_instant(text: str) -> int:
    """Milliseconds since 1970 of an ISO date or time; without a zone, UTC."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise StoreError(f"{text!r} is not a date or time: write it like 2026-03-02T09:00:00Z") from None
    return int((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1000)


def seed(service: Service, store: Store, scenario: str, number: int = 0, now: str | None = None) -> None:
    """Replaces everything in the store. All or nothing."""
    build = service.scenarios.get(scenario)
    data = None if build else _read(service, scenario)
    if data is not None and now is None:
        now = str(data["now"]) if data.get("now") else None
    with store.transaction():
        store.clear(service.tables)
        store.set_meta("seed", str(number))
        store.set_meta("scenario", scenario if build else Path(scenario).name)
        store.set_meta("epoch_ms", str(parse_instant(now) if now else DEFAULT_EPOCH_MS))
        if build:
            build(store, number)
        else:
            assert service.load is not None and data is not None
            _load(service, store, data, scenario)
        service.prepare(store)


def _load(service: Service, store: Store, data: dict[str, object], name: str) -> None:
    from benchflow_claw_kit.errors import ApiError

    assert service.load is not None
    try:
        service.load(store, data)
    except (ApiError, KeyError, TypeError, ValueError, AttributeError) as error:
        what = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise StoreError(f"{name}: not a scenario of {service.program}: {what}") from error


def _read(service: Service, scenario: str) -> dict[str, object]:
    path = Path(scenario)
    if not path.is_file() or service.load is None:
        known = ", ".join(sorted(service.scenarios))
        raise StoreError(f"unknown scenario {scenario!r}: neither one of {known} nor a file")
    try:
        value = json.loads(path.read_text())
    except (OSError, ValueError, RecursionError) as error:
        raise StoreError(f"{scenario}: not JSON: {error}") from None
    if not isinstance(value, dict):
        raise StoreError(f"{scenario}: not a scenario: a JSON object is wanted")
    return value
