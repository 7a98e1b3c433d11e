"""What the SDK raises, as what the core understands: by class and status, never by the text."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import httpx
from benchflow_boxkit import failures
from benchflow_boxkit.failures import Missing, first_line
from connectrpc.errors import ConnectError
from e2b import AuthenticationException, NotFoundException, RateLimitException, SandboxException
from e2b.exceptions import BuildException, SandboxNotRunningException, TimeoutException

from benchflow_core.errors import BenchflowError, InfrastructureError

__all__ = ["refusal", "translated"]


@contextmanager
def translated(what: str) -> Iterator[None]:
    """`what` was being done: `the box cannot be made`."""
    try:
        yield
    except (BenchflowError, Missing):
        raise
    except AuthenticationException as error:
        raise refusal(what, 401, first_line(error)) from error
    except RateLimitException as error:
        raise refusal(what, 429, first_line(error)) from error
    except (NotFoundException, SandboxNotRunningException) as error:
        raise refusal(what, 404, first_line(error)) from error
    except TimeoutException as error:
        raise InfrastructureError(f"E2B: {what}: {first_line(error)}.", retryable=True) from error
    except (SandboxException, BuildException) as error:
        raise refusal(what, getattr(error, "status_code", None), first_line(error)) from error
    except (TimeoutError, httpx.HTTPError, ConnectError, OSError) as error:
        raise InfrastructureError(f"E2B: {what}: {type(error).__name__} {error}".rstrip() + ".") from error


def refusal(what: str, status: int | None, message: str, retry_after: float = 0.0) -> BenchflowError | Missing:
    """What a status of the vendor's means."""
    check = "Check E2B_API_KEY: bench plugins doctor e2b."
    return failures.refusal(f"E2B: {what}: {message}.", status, credentials=check, retry_after=retry_after)
