"""The part of docs/services/gdoc.md that is made: the methods, and the request types of a batch."""

from __future__ import annotations

from collections.abc import Mapping

from benchflow_service_claw_gdoc.requests import HANDLERS

__all__ = ["REQUESTS", "more"]

_NOTES = {
    "deletePositionedObject": "no: there are no positioned objects, each is refused as unknown",
}
REQUESTS = frozenset(HANDLERS.keys() - {"deletePositionedObject"})


def more(schemas: Mapping[str, Mapping[str, object]], seen: Mapping[str, str]) -> str:
    """Every request type of the discovery document, after the methods."""
    known = sorted(schemas["Request"]["properties"])  # type: ignore[call-overload]
    rows = ["| request of batchUpdate | answers | seen by |", "|---|---|---|"]
    for name in known:
        why = next((note for word, note in _NOTES.items() if word in name), "no")
        rows.append(f"| `{name}` | {'yes' if name in REQUESTS else why} | {seen.get('#' + name, '')} |")
    head = f"{sum(name in REQUESTS for name in known)} of {len(known)} request types answer.\n\n"
    return head + "\n".join(rows)
