"""One line per event."""

from __future__ import annotations

from datetime import UTC, datetime

from benchflow_core.contracts import Event, JobFinished, JobStarted


def note(event: Event) -> None:
    when = datetime.fromtimestamp(event.time, UTC).isoformat(timespec="seconds")
    what = ""
    if isinstance(event, JobStarted):
        what = f"started, {event.planned} rollouts planned"
    elif isinstance(event, JobFinished):
        what = "finished"
    with open(event.job_dir / "{{name}}.log", "a", encoding="utf-8") as log:
        log.write(f"{when} {event.job} {what}\n")
