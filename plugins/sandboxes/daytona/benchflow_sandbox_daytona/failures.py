"""What Daytona's SDK raises, as the core understands it."""

from __future__ import annotations

from typing import Final

import aiohttp
from benchflow_boxkit.failures import Answer, Translation, answer_by_class, first_line, seconds_asked
from daytona import (
    DaytonaAuthenticationError,
    DaytonaError,
    DaytonaForbiddenError,
    DaytonaNotFoundError,
    DaytonaRateLimitError,
)
from daytona_api_client_async import ApiException

__all__ = ["translated"]

_STATUS: Final[dict[type[Exception], int | None]] = {
    DaytonaNotFoundError: 404,
    DaytonaRateLimitError: 429,
    DaytonaAuthenticationError: 401,
    DaytonaForbiddenError: 403,
}
"""Of errors that came without one."""


def _answer(error: Exception) -> Answer | None:
    if isinstance(error, DaytonaError):
        known = answer_by_class(error, _STATUS)
        status = error.status_code or (known.status if known else None)
        return Answer(status, first_line(error), seconds_asked(dict(error.headers or {})))
    if isinstance(error, ApiException):
        return Answer(error.status, str(error.reason).rstrip("."), seconds_asked(dict(error.headers or {})))
    return None


translated: Final = Translation("Daytona", "DAYTONA_API_KEY", _answer, (aiohttp.ClientError,))
