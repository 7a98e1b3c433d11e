"""Errors as Google's HTTP APIs answer them: a status, a reason, a body in one of two dialects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

__all__ = ["ApiError", "Dialect", "bad_request", "error_body", "forbidden", "invalid", "not_found", "required"]

Dialect = Literal["modern", "legacy"]
"""`modern` (Gmail, Docs) carries a canonical `status`; `legacy` (Calendar, Drive) names the place of the fault."""

CANONICAL = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    409: "ALREADY_EXISTS",
    410: "FAILED_PRECONDITION",
    412: "FAILED_PRECONDITION",
    413: "INVALID_ARGUMENT",
    429: "RESOURCE_EXHAUSTED",
    499: "CANCELLED",
    500: "INTERNAL",
    501: "UNIMPLEMENTED",
    503: "UNAVAILABLE",
}


class ApiError(Exception):
    """What the API refuses. `status` is HTTP's; `reason` is the word clients look at."""

    def __init__(
        self,
        status: int,
        message: str,
        reason: str = "badRequest",
        *,
        domain: str = "global",
        location: str | None = None,
        location_type: str | None = None,
        canonical: str | None = None,
        details: list[Mapping[str, Any]] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.reason = reason
        self.domain = domain
        self.location = location
        self.location_type = location_type
        self.canonical = canonical or CANONICAL.get(status, "UNKNOWN")
        self.details = details or []
        self.headers = dict(headers or {})


def error_body(error: ApiError, dialect: Dialect = "modern") -> dict[str, Any]:
    entry: dict[str, Any] = {"message": error.message, "domain": error.domain, "reason": error.reason}
    if error.location is not None:
        entry["locationType"] = error.location_type or "parameter"
        entry["location"] = error.location
    body: dict[str, Any] = {"code": error.status, "message": error.message, "errors": [entry]}
    if dialect == "modern":
        body["status"] = error.canonical
    if error.details:
        body["details"] = list(error.details)
    return {"error": body}


def not_found(message: str = "Requested entity was not found.", **kwargs: Any) -> ApiError:
    return ApiError(404, message, "notFound", **kwargs)


def bad_request(message: str, reason: str = "badRequest", **kwargs: Any) -> ApiError:
    return ApiError(400, message, reason, **kwargs)


def invalid(message: str, location: str | None = None, reason: str = "invalid", **kwargs: Any) -> ApiError:
    return ApiError(400, message, reason, location=location, **kwargs)


def required(name: str, kind: str = "parameter") -> ApiError:
    return ApiError(400, f"Required parameter: {name}", "required", location=name, location_type=kind)


def forbidden(message: str, reason: str = "forbidden", **kwargs: Any) -> ApiError:
    return ApiError(403, message, reason, **kwargs)
