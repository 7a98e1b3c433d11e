"""RFC 3339 in and out, and what is shown when no `fields` are asked for."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from benchflow_claw_kit.api import Call
from benchflow_claw_kit.errors import ApiError
from benchflow_claw_kit.paging import BadToken, read_token, write_token

__all__ = ["narrow", "page", "parse_time", "require_fields", "show_time"]


def show_time(ms: int | None) -> str | None:
    if ms is None:
        return None
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{ms % 1000:03d}Z"


def parse_time(text: str, where: str = "body") -> int:
    try:
        at = datetime.fromisoformat(text.replace("Z", "+00:00").replace("z", "+00:00"))
        return int((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1000)
    except (ValueError, OverflowError):
        raise ApiError(400, f'Invalid value for: Invalid format: "{text[:100]}"', "invalid", location=where) from None


def narrow(call: Call, value: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    """v3 shows a few fields only, unless `fields` asks for more."""
    if call.request.first("fields") or call.request.first("$fields"):
        return value
    return {name: value[name] for name in names if name in value}


def require_fields(call: Call) -> None:
    if not (call.request.first("fields") or call.request.first("$fields")):
        raise ApiError(400, "The 'fields' parameter is required for this method.", "required", location="fields")


def page(call: Call, items: list[Any], default: int, most: int, question: Any = None) -> tuple[list[Any], str | None]:
    """One page and the token of the next."""
    size = call.get("pageSize", default)
    if not 1 <= size <= most:
        raise ApiError(
            400,
            f"Invalid value '{size}'. Values must be within the range: [1, {most}]",
            "invalidParameter",
            location="pageSize",
        )
    start = 0
    token = call.get("pageToken")
    asked = [call.method.id, question]
    if token:
        try:
            start = int(read_token(call.store.secret, token, asked)["at"])
        except (BadToken, KeyError):
            raise ApiError(400, "Invalid Value", "invalid", location="pageToken") from None
    end = start + size
    following = write_token(call.store.secret, {"at": end}, asked) if end < len(items) else None
    return items[start:end], following
