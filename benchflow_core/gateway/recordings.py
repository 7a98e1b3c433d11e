"""`trajectory/recording/<role>.jsonl`: the exchanges of a rollout as they crossed the wire, to be replayed."""

from __future__ import annotations

import re
from collections.abc import AsyncIterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchflow_core.contracts.gateways import Exchange
from benchflow_core.errors import ConfigurationError
from benchflow_core.results.files import cannot_write, encoder, read_json
from benchflow_core.results.layout import RolloutDir
from benchflow_core.results.redact import Redactor

__all__ = ["find_recording", "recording_of", "write_recording"]

_encode = encoder()


def recording_of(folder: Path, role: str) -> Path:
    """The file of one role, below a recording's folder."""
    return folder / f"{re.sub(r'[^A-Za-z0-9._-]', '-', role)}.jsonl"


async def write_recording(path: Path, exchanges: AsyncIterable[Exchange], redactor: Redactor) -> int:
    """One line per exchange; one is held at a time. Returns how many."""
    count = 0
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w", encoding="utf-8", errors="replace") as file:
            async for exchange in exchanges:
                if exchange.error_type != "refused":
                    file.write(redactor.json_text(_encode(_line(exchange)), _encode) + "\n")
                    count += 1
    except OSError as error:
        raise cannot_write(path, error) from error
    return count


def _line(exchange: Exchange) -> dict[str, Any]:
    return {
        "wire": exchange.wire,
        "path": exchange.path,
        "model": exchange.requested_model,
        "status": exchange.status,
        "error_type": exchange.error_type,
        "content_type": exchange.content_type,
        "streamed": exchange.streamed,
        "request": exchange.request,
        "answer": exchange.answer,
        "usage": asdict(exchange.usage),
    }


def find_recording(directory: Path, task: str, trial: int) -> Path:
    """The recording of a task below a rollout's folder or a job's; of several trials the same one."""
    if not directory.is_dir():
        raise ConfigurationError(f"{directory} is not a folder.", remedy="Name a job or a rollout made with --record.")
    if (own := RolloutDir(directory).recording).is_dir():
        return own
    found = {p: _made_for(p) for p in sorted(directory.glob("*/trajectory/recording"))}
    same = {p: made for p, made in found.items() if made[0] == task}
    if not same:
        tasks = ", ".join(sorted({made[0] for made in found.values()})) or "nothing: it was made without --record"
        raise ConfigurationError(f"{directory} has no recording of task '{task}'.", remedy=f"It has: {tasks}.")
    return next((p for p, made in same.items() if made[1] == trial), next(iter(same)))


def _made_for(recording: Path) -> tuple[str, int]:
    """Task and trial of the rollout a recording belongs to."""
    try:
        config = read_json(RolloutDir(recording.parents[1]).config)
        return Path(config["task_path"]).name, int(config["trial"])
    except (OSError, ValueError, KeyError, TypeError, ConfigurationError):
        return "", 0
