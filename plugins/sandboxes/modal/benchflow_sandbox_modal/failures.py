"""What the SDK raises, as what the core understands: by class and details, never by the text."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import grpclib
import modal
from benchflow_boxkit.failures import Missing, first_line, out_of_quota
from grpclib.exceptions import StreamTerminatedError
from modal import exception
from modal_proto import api_pb2

from benchflow_core.errors import (
    BenchflowError,
    CredentialRefused,
    InfrastructureError,
    SandboxRateLimited,
    SandboxStartError,
)

__all__ = ["translated"]

_AGAIN = (
    exception.ServiceError,
    exception.InternalError,
    exception.ConnectionError,
    exception.TimeoutError,
    exception.ClientClosed,
    exception.InternalFailure,
    exception.DataLossError,
)


@contextmanager
def translated(what: str) -> Iterator[None]:
    """`what` was being done: `the box cannot be made`."""
    try:
        yield
    except (BenchflowError, Missing):
        raise
    except modal.Error as error:
        raise _error(f"Modal: {what}: {first_line(error)}.", error) from error
    except (TimeoutError, OSError, ValueError, grpclib.GRPCError, StreamTerminatedError) as error:
        raise InfrastructureError(f"Modal: {what}: {type(error).__name__} {error}".rstrip() + ".") from error


def _error(text: str, error: modal.Error) -> BenchflowError | Missing:
    if isinstance(error, exception.NotFoundError):
        return Missing(text)
    if isinstance(error, exception.AuthError | exception.PermissionDeniedError):
        return CredentialRefused(
            text, remedy="Check MODAL_TOKEN_ID and MODAL_TOKEN_SECRET: bench plugins doctor modal."
        )
    if isinstance(error, exception.ResourceExhaustedError):
        return _exhausted(text, error)
    return SandboxStartError(text, retryable=isinstance(error, _AGAIN))


def _exhausted(text: str, error: exception.ResourceExhaustedError) -> BenchflowError:
    """Too many requests come with how long to wait; a limit of the workspace does not."""
    for detail in getattr(error, "_grpc_details", None) or ():
        if isinstance(detail, api_pb2.RPCRetryPolicy):
            wait = round(max(0.0, detail.retry_after_secs), 3)
            return SandboxRateLimited(text, details={"retry_after": wait}, retryable=True)
    return out_of_quota(text)
