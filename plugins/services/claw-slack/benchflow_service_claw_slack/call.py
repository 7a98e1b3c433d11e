"""One call of a method: who asks, with which arguments."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from benchflow_claw_kit.http import decode_json
from benchflow_claw_kit.store import Row, Store

__all__ = ["SlackCall", "SlackError"]


class SlackError(Exception):
    """`ok: false` with Slack's word for it, and what goes beside it."""

    def __init__(self, error: str, status: int = 200, headers: dict[str, str] | None = None, **extra: Any) -> None:
        super().__init__(error)
        self.error = error
        self.status = status
        self.headers = headers or {}
        self.extra = extra


def bad_arguments(*messages: str) -> SlackError:
    return SlackError("invalid_arguments", response_metadata={"messages": [f"[ERROR] {text}" for text in messages]})


@dataclass(slots=True)
class SlackCall:
    store: Store
    method: str
    args: dict[str, Any]
    me: Row
    """The user the token speaks for: a person, or the app's bot user."""
    token: str
    scopes: frozenset[str] | None
    """None: not said, so everything is allowed."""
    team: Row
    base_url: str = ""
    warnings: list[str] = field(default_factory=list)
    files: dict[str, tuple[str, bytes]] = field(default_factory=dict)
    """Uploaded parts by their field's name: file name and content."""

    # -- arguments, as forms or JSON give them

    def has(self, name: str) -> bool:
        return self.args.get(name) not in (None, "")

    def text(self, name: str, default: str = "") -> str:
        value = self.args.get(name)
        if value is None:
            return default
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, dict | list):
            return json.dumps(value)
        return str(value)

    def need(self, name: str, error: str | None = None) -> str:
        value = self.text(name).strip()
        if not value:
            raise SlackError(error) if error else bad_arguments(f"missing required field: {name}")
        return value

    def number(self, name: str, default: int, low: int = 0, high: int = 2**53, error: str = "") -> int:
        if not self.has(name):
            return default
        found = re.fullmatch(r"[+-]?\d{1,18}(\.0*)?", self.text(name).strip())
        value = int(self.text(name).strip().partition(".")[0]) if found else None
        if value is None or not low <= value <= high:
            raise SlackError(error) if error else bad_arguments(f"{name} must be an integer from {low} to {high}")
        return value

    def flag(self, name: str, default: bool = False) -> bool:
        value = self.text(name).lower()
        return value in ("true", "1", "t", "yes") if value else default

    def listed(self, name: str) -> list[str]:
        """A comma-separated list, or a JSON array."""
        value = self.args.get(name)
        if isinstance(value, str) and value.lstrip().startswith("["):
            with suppress(ValueError, RecursionError):
                value = decode_json(value.encode())
        if isinstance(value, list):
            return [str(item).strip() for item in value if str(item).strip()]
        return [part.strip() for part in self.text(name).split(",") if part.strip()]

    def structure(self, name: str, error: str) -> Any:
        """JSON, sent as such or as text in a form."""
        value = self.args.get(name)
        if value in (None, ""):
            return None
        if isinstance(value, str):
            try:
                return decode_json(value.encode())
            except (ValueError, RecursionError):
                raise SlackError(error) from None
        return value

    # -- the world

    @property
    def user(self) -> str:
        return str(self.me["id"])

    @property
    def is_bot(self) -> bool:
        return bool(self.me["is_bot"])

    @property
    def now(self) -> int:
        return self.store.now_ms() // 1000

    def need_scope(self, *any_of: str) -> None:
        """One of these, when the token says what it has."""
        if self.scopes is None or not any_of or self.scopes.intersection(any_of):
            return
        raise SlackError("missing_scope", needed=",".join(any_of[:1]), provided=",".join(sorted(self.scopes)))
