"""What a claw service is to the kit: its names, its tables, its methods, its worlds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from benchflow_claw_kit.api import Api, Method
from benchflow_claw_kit.auth import Principal, identify
from benchflow_claw_kit.errors import ApiError, Dialect, error_body
from benchflow_claw_kit.http import Request, Response, decode_json, json_response
from benchflow_claw_kit.store import Store

__all__ = ["Scenario", "Service", "Tool", "View"]

Scenario = Callable[[Store, int], None]
"""(empty store, seed): fills the store, the same way every time."""


@dataclass(frozen=True, slots=True)
class Tool:
    """An MCP tool that calls one method. Arguments named like its parameters go there, others in the body."""

    name: str
    description: str
    method: str
    properties: Mapping[str, Mapping[str, Any]]
    required: tuple[str, ...] = ()
    fixed: Mapping[str, Any] = field(default_factory=dict)
    """Arguments that are always the same, e.g. `userId`."""
    prepare: Callable[[dict[str, Any]], dict[str, Any]] | None = None
    """Turns the tool's arguments into the method's."""


@dataclass(frozen=True, slots=True)
class View:
    """A table of the state page."""

    title: str
    sql: str


@dataclass
class Service:
    """Subclass to change how errors are worded, bodies read or users known (Slack does)."""

    name: str
    program: str
    port: int
    summary: str
    schema: str
    api: Api = field(default_factory=Api)
    dialect: Dialect = "modern"
    scenarios: Mapping[str, Scenario] = field(default_factory=dict)
    load: Callable[[Store, Mapping[str, Any]], None] | None = None
    """Fills an empty store from a task's own scenario file (JSON)."""
    prepare: Callable[[Store], None] = lambda store: None
    """Makes an empty database usable: its first user and what every user has. Does nothing to one that has a user."""
    tools: tuple[Tool, ...] = ()
    views: tuple[View, ...] = ()
    tables: tuple[str, ...] = ()
    """Its own tables, when the file is shared with another service; empty means all."""
    handle: Callable[[Request, Store], Response] | None = None
    """Answers every request itself, for an API that is not Google's. May raise ApiError; not inside a transaction."""
    kinds: Mapping[str, str] = field(default_factory=dict)
    """Table to the word a diff uses for its rows: `messages` to `message`."""
    blobs: frozenset[str] = frozenset()
    """`table.column` that a dump shows by size and digest only."""
    max_body: int = 10 * 1024 * 1024
    """Of a request that is no upload."""
    batch_limit: int = 100
    too_large: ApiError = field(default_factory=lambda: ApiError(413, "Request Entity Too Large", "uploadTooLarge"))

    def render_error(self, error: ApiError, request: Request) -> Response:
        body = error_body(error, self.dialect)
        if request.first("$.xgafv") == "2":
            body["error"].pop("errors", None)
        return json_response(body, error.status, error.headers)

    def identify(self, request: Request, store: Store, require: bool) -> Principal:
        return identify(request, store, require)

    def read_body(self, request: Request, method: Method) -> dict[str, Any]:
        """The JSON object of a request, its types checked."""
        if not request.body.strip():
            return {}
        try:
            value = decode_json(request.body)
        except (ValueError, UnicodeDecodeError):
            raise self.bad_json(request.body) from None
        if not isinstance(value, dict):
            raise ApiError(
                400, 'Invalid JSON payload received. Unknown name "": Root element must be a message.', "parseError"
            )
        if method.request and self.api.contract:
            return self.api.contract.body(method.request, value)
        return value

    def bad_json(self, body: bytes) -> ApiError:
        if self.dialect == "legacy":
            return ApiError(400, "Parse Error", "parseError")
        shown = body[:120].decode("utf-8", "replace").splitlines()
        return ApiError(
            400, f"Invalid JSON payload received. Unexpected token.\n{shown[0] if shown else ''}\n^", "parseError"
        )
