"""Requests and responses, apart from any server: a batch makes them by hand, the server from a socket."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, unquote

__all__ = ["Request", "Response", "decode_json", "json_response", "split_target"]


@dataclass(slots=True)
class Request:
    method: str
    path: str
    """Still percent-encoded: an encoded slash is part of a name."""
    query: dict[str, list[str]] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    """Names in lower case."""
    body: bytes = b""

    def first(self, name: str, default: str | None = None) -> str | None:
        values = self.query.get(name)
        return values[0] if values else default

    def header(self, name: str, default: str = "") -> str:
        return self.headers.get(name.lower(), default)

    @property
    def content_type(self) -> str:
        return self.header("content-type").partition(";")[0].strip().lower()


@dataclass(slots=True)
class Response:
    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    refused: str = ""
    """Why, where an API refuses with status 200. For the log of calls."""

    def json(self) -> Any:
        return json.loads(self.body) if self.body else None


def json_response(
    value: Any, status: int = 200, headers: Mapping[str, str] | None = None, pretty: bool = True
) -> Response:
    text = json.dumps(
        value, ensure_ascii=False, indent=2 if pretty else None, separators=None if pretty else (",", ":")
    )
    body = (text + ("\n" if pretty else "")).encode("utf-8", "replace")
    return Response(status, body, {"Content-Type": "application/json; charset=UTF-8", **(headers or {})})


def decode_json(body: bytes) -> Any:
    """The JSON value of a body. ValueError for anything else, too deep a nesting included."""
    try:
        value = json.loads(body.decode("utf-8-sig"), parse_constant=_refuse)
        return _mended(value) if b"\\ud" in body.lower() else value
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _mended(value: Any) -> Any:
    """Half of a surrogate pair is no character: nothing could store or send it."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [_mended(item) for item in value]
    return {_mended(name): _mended(item) for name, item in value.items()} if isinstance(value, dict) else value


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is no JSON number")


def split_target(target: str) -> tuple[str, dict[str, list[str]]]:
    """A request target as path (still encoded) and query; a full URL loses its host."""
    if "://" in target.partition("?")[0]:
        target = "/" + target.split("://", 1)[1].partition("/")[2]
    path, _, query = target.partition("?")
    return path, parse_qs(query, keep_blank_values=True, max_num_fields=2000) if query else {}


def decode_segment(text: str) -> str:
    return unquote(text, errors="replace")
