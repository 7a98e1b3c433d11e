"""The vendor's own schema, as its generated clients have it: which routes there are, and what a body may hold."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import daytona_api_client_async
import daytona_toolbox_api_client_async

from benchflow_testing_clouds.ledger import Ledger

__all__ = ["known_route", "parse", "render"]

_ROUTE = re.compile(r"method='([A-Z]+)',\s*resource_path='([^']+)'")
_MORE = (("GET", "/process/pty/create-connect"),)
"""What the SDK asks for beside its generated client."""


@cache
def _routes(toolbox: bool) -> list[tuple[str, re.Pattern[str], str]]:
    package = daytona_toolbox_api_client_async if toolbox else daytona_api_client_async
    found = list(_MORE) if toolbox else []
    for path in (Path(str(package.__file__)).parent / "api").glob("*_api.py"):
        found += _ROUTE.findall(path.read_text())
    rows = []
    for method, route in sorted(set(found), key=lambda row: row[1].count("{")):
        pattern = re.sub(r"\\{[^}]*\\}", "[^/]+", re.escape(route))
        rows.append((method, re.compile(pattern), route))
    return rows


def known_route(method: str, path: str, *, toolbox: bool) -> str | None:
    """The route as the vendor writes it, or nothing where there is none."""
    for wanted, pattern, route in _routes(toolbox):
        if wanted == method and pattern.fullmatch(path):
            return f"{method} {route}"
    return None


def parse(model: Any, data: Any, ledger: Ledger, where: str) -> Any:
    """A request's body as the vendor's model; what does not fit is a violation."""
    try:
        found = model.from_dict(data)
    except Exception as error:
        ledger.violation(f"{where}: not a {model.__name__}: {error}")
        raise ValueError(str(error)) from error
    for unknown in _unknown(found, data):
        ledger.violation(f"{where}: {unknown}")
    return found


def _unknown(found: Any, data: Any) -> Iterator[str]:
    """Fields that the vendor's model leaves out in silence, at any depth."""
    found = getattr(found, "actual_instance", found)
    if isinstance(found, list) and isinstance(data, list):
        for one, given in zip(found, data, strict=True):
            yield from _unknown(one, given)
    elif hasattr(type(found), "model_fields") and isinstance(data, dict):
        names = {field.serialization_alias or name: name for name, field in type(found).model_fields.items()}
        yield from (f"{type(found).__name__} has no field {key!r}" for key in sorted(set(data) - set(names)))
        for key in set(data) & set(names):
            yield from _unknown(getattr(found, names[key]), data[key])


def render(model: Any, **values: Any) -> dict[str, Any]:
    """An answer, checked by the vendor's model on its way out."""
    found: dict[str, Any] = json.loads(model(**values).to_json())
    return found
