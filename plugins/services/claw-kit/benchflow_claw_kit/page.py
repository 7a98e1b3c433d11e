"""The state as one HTML page. Every value goes through one escaping function; the page has no script."""

from __future__ import annotations

from html import escape
from typing import Any

from benchflow_claw_kit.service import Service
from benchflow_claw_kit.store import Store

__all__ = ["state_page"]

_STYLE = (
    "body{font:14px system-ui,sans-serif;margin:2em;color:#222}table{border-collapse:collapse;margin:.5em 0 2em}"
    "th,td{border:1px solid #ccc;padding:3px 8px;text-align:left;vertical-align:top;"
    "max-width:40em;overflow-wrap:anywhere}"
    "th{background:#f3f3f3}caption{text-align:left;font-weight:600;padding:4px 0}"
)
LIMIT = 200


def state_page(service: Service, store: Store) -> str:
    facts = {name: store.get_meta(name) for name in ("scenario", "seed") if store.get_meta(name)}
    head = ", ".join(f"{name} {value}" for name, value in facts.items()) or "not seeded"
    tables = [_table(view.title, store.all(view.sql + f" LIMIT {LIMIT}")) for view in service.views]
    calls = store.all("SELECT at, method, verb, path, user, status, refused FROM _calls ORDER BY seq DESC LIMIT 50")
    return (
        f"<!doctype html><html lang=en><meta charset=utf-8><title>{_text(service.program)}</title>"
        f"<style>{_STYLE}</style>"
        f"<h1>{_text(service.summary)}</h1><p>{_text(head)}</p>{''.join(tables)}{_table('Last calls', calls)}</html>"
    )


def _table(title: str, rows: list[dict[str, Any]]) -> str:
    if not rows:
        return f"<table><caption>{_text(title)}</caption><tr><td>none</table>"
    head = "".join(f"<th>{_text(name)}" for name in rows[0])
    lines = "".join("<tr>" + "".join(f"<td>{_text(value)}" for value in row.values()) for row in rows)
    more = f" (the first {LIMIT})" if len(rows) == LIMIT else ""
    return f"<table><caption>{_text(title + more)}</caption><tr>{head}{lines}</table>"


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bytes):
        return f"{len(value)} bytes"
    text = str(value)
    shown = "".join(c if c.isprintable() or c in "\n\t" else "\ufffd" for c in text[:2000])
    return escape(shown) + (" …" if len(text) > 2000 else "")
