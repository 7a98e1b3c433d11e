"""The plugin: which events it wants, and what it does with them."""

from __future__ import annotations

from benchflow_core.contracts import Event, JobFinished, JobStarted, ObserverSpec
from benchflow_core.hookspecs import hookimpl


def on_event(event: Event) -> None:
    from {{module}}.note import note

    note(event)


@hookimpl
def benchflow_observer() -> ObserverSpec:
    return ObserverSpec(
        summary="notes when jobs begin and end",
        on_event=on_event,
        events=(JobStarted, JobFinished),
    )
