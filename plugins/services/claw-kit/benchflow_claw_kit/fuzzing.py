"""Requests made by chance from an API's contract, most of them wrong in some way. None may be answered with a 5xx."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from random import Random
from typing import Any
from urllib.parse import quote

from benchflow_claw_kit.http import Request
from benchflow_claw_kit.service import Service

__all__ = ["some_request"]

WORDS = (
    *(
        "",
        "x",
        "me",
        "primary",
        "0",
        "-1",
        "2147483648",
        "1" * 40,
        "true",
        "null",
        "../../etc/passwd",
        "%00",
        "\x00",
        "ä🎉",
    ),
    *(
        "a@b.example",
        "2026-03-10",
        "2026-03-10T10:00:00Z",
        "9999-12-31T23:59:59Z",
        "0001-01-01T00:00:00Z",
        "Europe/Berlin",
    ),
    *(
        "RRULE:FREQ=DAILY",
        "RRULE:FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30",
        "EXDATE:20260310",
        "' OR 1=1 --",
        "<b>",
        "\ud800",
    ),
    *(
        "2026-03-10T25:00:00Z",
        "2026-03-10T10:00:00+99:99",
        "{",
        "[]",
        "INBOX",
        "TRASH",
        "Label_1",
        "from:(",
        "$",
        "a" * 3000,
    ),
)
ODD: tuple[Any, ...] = (None, True, False, 0, -1, 1.5, 10**30, "", "x", [], {}, [[]], [None], {"": None}, "9" * 400)


def some_value(
    random: Random, kind: Any, schemas: Mapping[str, Any], known: Mapping[str, list[str]], depth: int = 0
) -> Any:
    """Mostly of the kind that is declared."""
    if random.random() < 0.08 or depth > 5:
        return random.choice(ODD)
    if isinstance(kind, list):
        return [some_value(random, kind[0], schemas, known, depth + 1) for _ in range(random.randint(0, 3))]
    if isinstance(kind, str) and kind.startswith("#"):
        return some_message(random, schemas[kind[1:]], schemas, known, depth + 1)
    if isinstance(kind, dict):
        if isinstance(kind.get("enum"), list):
            return random.choice(kind["enum"])
        if isinstance(kind.get("int"), list):
            return random.randint(-5, 500)
        return some_message(random, kind, schemas, known, depth + 1)
    if kind in ("integer", "number"):
        return random.choice((0, 1, 7, 100, -1, 2**31, 2**40))
    if kind == "int64":
        return random.choice(("0", "5", "-1", str(2**62), str(2**64), 7))
    if kind == "boolean":
        return random.random() < 0.5
    return random.choice([*WORDS, *known.get("*", [])])


def some_message(
    random: Random, fields: Mapping[str, Any], schemas: Mapping[str, Any], known: Mapping[str, list[str]], depth: int
) -> Any:
    value: dict[str, Any] = {}
    for name, kind in fields.items():
        if random.random() < (0.5 if depth < 2 else 0.25):
            value["extra" if name == "*" else name] = some_value(random, kind, schemas, known, depth)
    return value


def some_request(service: Service, random: Random, known: Mapping[str, list[str]]) -> Request:
    """`known` has ids that exist, by the name of a path parameter; `*` for any text."""
    contract = service.api.contract
    assert contract is not None
    id = random.choice(sorted(service.api.methods))
    method = service.api.methods[id]

    def fill(found: re.Match[str]) -> str:
        choices = [*known.get(found.group(1), []), *(random.choice(WORDS) or "x" for _ in range(2))]
        return quote(random.choice(choices).encode("utf-8", "replace"), safe="") or "x"

    path = re.sub(r"\{(\w+)\}", fill, method.path)
    query = {
        name: [_sendable(random.choice(WORDS) if random.random() < 0.5 else some_value(random, kind, {}, known))]
        for name, kind in method.query.items()
        if random.random() < 0.3
    }
    body = b""
    if method.request:
        value = some_message(random, contract.schemas[method.request], contract.schemas, known, 0)
        body = json.dumps(value).encode()
        if random.random() < 0.03:
            body = body[: random.randint(0, len(body))]
    headers = {"content-type": "application/json"}
    if random.random() < 0.1:
        headers["if-match"] = random.choice(('"1"', "*", "", "garbage"))
    return Request(method.verb, path, query, headers, body)


def _sendable(value: Any) -> str:
    return str(value).encode("utf-8", "replace").decode()
