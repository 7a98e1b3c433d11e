"""What the SDK raises, as what the core understands: by class and status, never by the text."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import aiohttp
from benchflow_boxkit.failures import Missing, first_line, refusal, seconds_asked
from daytona import (
    DaytonaAuthenticationError,
    DaytonaError,
    DaytonaForbiddenError,
    DaytonaNotFoundError,
    DaytonaRateLimitError,
)
from daytona_api_client_async import ApiException

from benchflow_core.errors import BenchflowError, InfrastructureError

__all__ = ["translated"]

_STATUS = {
    DaytonaNotFoundError: 404,
    DaytonaRateLimitError: 429,
    DaytonaAuthenticationError: 401,
    DaytonaForbiddenError: 403,
}
"""Of errors that came without one."""


@contextmanager
def translated(what: str) -> Iterator[None]:
    """`what` was being done: `the box cannot be made`."""
    try:
        yield
    except (BenchflowError, Missing):
        raise
    except DaytonaError as error:
        status = error.status_code or next((n for kind, n in _STATUS.items() if isinstance(error, kind)), None)
        raise _error(what, first_line(error), status, dict(error.headers or {})) from error
    except ApiException as error:
        raise _error(what, str(error.reason).rstrip("."), error.status, dict(error.headers or {})) from error
    except (TimeoutError, aiohttp.ClientError, OSError) as error:
        raise InfrastructureError(f"Daytona: {what}: {type(error).__name__} {error}".rstrip() + ".") from error


def _error(what: str, message: str, status: int | None, headers: dict[str, str]) -> BenchflowError | Missing:
    return refusal(
        f"Daytona: {what}: {message}.",
        status,
        credentials="Check DAYTONA_API_KEY: bench plugins doctor daytona.",
        retry_after=seconds_asked(headers),
    )
