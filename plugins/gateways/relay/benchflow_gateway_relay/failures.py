"""What went wrong, by kind; and how a gateway says so in the words of each wire."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchflow_core.contracts import Wire

__all__ = ["error_body", "message_of", "of_answer", "of_status"]

_UNKNOWN_MODEL = frozenset({"model_not_found", "invalid_model", "unknown_model", "not_found_error", "NOT_FOUND"})
_NO_CREDIT = frozenset({"insufficient_quota", "billing_error", "insufficient_balance"})
_BAD_KEY = frozenset({"API_KEY_INVALID", "authentication_error", "invalid_api_key", "UNAUTHENTICATED"})
_TOO_MANY = frozenset({"rate_limit_error", "rate_limit_exceeded", "RESOURCE_EXHAUSTED"})


def of_status(status: int, body: Mapping[str, Any] | None) -> str:
    """The kind of an answer that is not a success. Codes count, never the text of a message."""
    codes = _codes(body)
    if status < 400 or (body is None and status not in (401, 403, 429) and status < 500):
        return "not_a_model_api"
    if status == 401 or codes & _BAD_KEY:
        return "credential_refused"
    if status == 402 or codes & _NO_CREDIT:
        return "no_credit"
    if status == 403:
        return "permission_denied"
    if status == 429:
        return "provider_rate_limited"
    if status >= 500 or status in (408, 409):
        return "provider_error"
    if codes & _UNKNOWN_MODEL:
        return "unknown_model"
    if status == 404:
        # Without an error object it is the server that does not know the path, not the API the model.
        return "unknown_model" if body is not None and body.get("error") else "not_a_model_api"
    return "invalid_request"


def of_answer(response: Mapping[str, Any]) -> str | None:
    """The kind of an error that came inside a success, as streams and some providers have it."""
    if not response.get("error"):
        return None
    codes = _codes(response)
    if codes & _TOO_MANY:
        return "provider_rate_limited"
    return "credential_refused" if codes & _BAD_KEY else "no_credit" if codes & _NO_CREDIT else "provider_error"


def _codes(body: Mapping[str, Any] | None) -> set[str]:
    error = body.get("error") if body else None
    if not isinstance(error, Mapping):
        return set()
    found = {error.get("code"), error.get("type"), error.get("status")}
    details = error.get("details")
    found |= {d.get("reason") for d in details if isinstance(d, Mapping)} if isinstance(details, list) else set()
    return {code for code in found if isinstance(code, str)}


def message_of(body: Mapping[str, Any] | None) -> str:
    """The provider's own words."""
    error = body.get("error") if body else None
    if isinstance(error, Mapping):
        return str(error.get("message") or error.get("type") or "")
    return str(error or (body or {}).get("message") or (body or {}).get("detail") or "")


_OPENAI = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
    529: "overloaded_error",
}
_GEMINI = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
}
_CODES = {401: "invalid_api_key", 404: "model_not_found"}


def error_body(wire: Wire, status: int, message: str) -> dict[str, Any]:
    """An error as a client of the wire expects it."""
    if wire == "gemini":
        return {"error": {"code": status, "message": message, "status": _GEMINI.get(status, "UNAVAILABLE")}}
    kind = _OPENAI.get(status, "api_error" if status >= 500 else "invalid_request_error")
    if wire == "messages":
        return {"type": "error", "error": {"type": kind, "message": message}}
    return {"error": {"message": message, "type": kind, "param": None, "code": _CODES.get(status)}}
