"""What E2B's SDK raises, as the core understands it."""

from __future__ import annotations

from typing import Any, Final

import httpx
from benchflow_boxkit.failures import Answer, Translation, answer_by_class, first_line, seconds_asked
from connectrpc.errors import ConnectError
from e2b import AuthenticationException, NotFoundException, RateLimitException, SandboxException
from e2b.exceptions import BuildException, SandboxNotRunningException, TimeoutException

__all__ = ["refused", "translated"]

_STATUS: Final[dict[type[Exception], int | None]] = {
    AuthenticationException: 401,
    RateLimitException: 429,
    NotFoundException: 404,
    SandboxNotRunningException: 404,
    TimeoutException: 408,
}


def _answer(error: Exception) -> Answer | None:
    if found := answer_by_class(error, _STATUS):
        return found
    if isinstance(error, SandboxException | BuildException):
        return Answer(getattr(error, "status_code", None), first_line(error))
    return None


translated: Final = Translation("E2B", "E2B_API_KEY", _answer, (httpx.HTTPError, ConnectError))


def refused(what: str, response: Any) -> Exception:
    """Return the error for a response of the SDK's generated client, which raises none itself."""
    status = int(response.status_code)
    message = getattr(response.parsed, "message", "") or f"status {status}"
    return translated.refusal(what, Answer(status, message, seconds_asked(response.headers)))
