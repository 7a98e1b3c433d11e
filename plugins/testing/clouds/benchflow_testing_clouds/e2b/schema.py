"""The vendor's own schema, as the SDK has it: which routes there are, and what a message may hold."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import attrs
import e2b
from aiohttp import web

from benchflow_testing_clouds.ledger import Ledger

__all__ = ["E2bRefusal", "known_route", "message", "parse"]

_ROUTE = re.compile(r'"method": "(\w+)",\s*"url": f?"([^"]+)"')
_RPC = re.compile(r'"(/(?:process|filesystem)\.\w+/\w+)"')
_FILES = (("GET", "/health"), ("GET", "/files"), ("POST", "/files"))
"""What the SDK asks envd for beside its remote procedures."""


_PLAIN = {str: "str|Literal", int: "int|float", float: "float", bool: "bool", type(None): "None|NoneType"}
"""A value's type to what its field has to name."""


class E2bRefusal(Exception):
    """Answered with this status and message."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status, self.text = status, text


@cache
def _routes(envd: bool) -> list[tuple[str, re.Pattern[str], str]]:
    root = Path(str(e2b.__file__)).parent
    found: set[tuple[str, str]] = set()
    if envd:
        found.update(_FILES)
        for path in (root / "envd").glob("*/*_connect.py"):
            found.update(("POST", route) for route in _RPC.findall(path.read_text()))
    else:
        for path in (root / "api" / "client" / "api").glob("*/*.py"):
            found.update((method.upper(), route) for method, route in _ROUTE.findall(path.read_text()))
    rows = []
    for method, route in sorted(found, key=lambda row: (row[1].count("{"), row)):
        pattern = re.sub(r"\\{[^}]*\\}", "[^/]+", re.escape(route))
        rows.append((method, re.compile(pattern), route))
    return rows


def known_route(method: str, path: str, *, envd: bool) -> str | None:
    """The route as the vendor writes it, or nothing where there is none. `path` is as it came, not decoded."""
    for wanted, pattern, route in _routes(envd):
        if wanted == method and pattern.fullmatch(path):
            return f"{method} {route}"
    return None


async def parse(model: Any, request: web.Request, ledger: Ledger) -> Any:
    """A request's body as the vendor's model; what does not fit is a violation."""
    where = f"{request.method} {request.path}"
    try:
        found = model.from_dict(await request.json())
    except Exception as error:
        ledger.violation(f"{where}: not a {model.__name__}: {type(error).__name__} {error}")
        raise E2bRefusal(400, f"not a {model.__name__}") from error
    misfits = list(_misfits(found))
    for misfit in misfits:
        ledger.violation(f"{where}: {misfit}")
    if misfits:
        raise E2bRefusal(400, misfits[0])
    return found


def _misfits(found: Any) -> Iterator[str]:
    """What the vendor's model would carry along unseen: unknown fields, and values of another type, at any depth."""
    name = type(found).__name__
    fields = [field for field in attrs.fields(type(found)) if field.name != "additional_properties"]
    if fields:  # else anything goes by any name
        yield from (f"{name} has no field {key!r}" for key in sorted(found.additional_properties))
    for field in fields:
        value = getattr(found, field.name)
        for one in value if isinstance(value, list) else [value]:
            if attrs.has(type(one)):
                yield from _misfits(one)
            elif type(one) in _PLAIN and not re.search(rf"\b({_PLAIN[type(one)]}|Any)\b", str(field.type)):
                yield f"{name}.{field.name} is no {type(one).__name__}"


def message(model: Any, data: bytes, ledger: Ledger, where: str) -> Any:
    """A remote procedure's message; unknown fields are a violation."""
    try:
        return model.from_json(data)
    except Exception as error:
        ledger.violation(f"{where}: not a {model.__name__}: {error}")
        raise E2bRefusal(400, f"not a {model.__name__}") from error
