"""What Modal's SDK raises, as the core understands it."""

from __future__ import annotations

from typing import Final

import grpclib
import modal
from benchflow_boxkit.failures import Answer, Translation, answer_by_class, first_line
from grpclib.exceptions import StreamTerminatedError
from modal import exception
from modal_proto import api_pb2

__all__ = ["translated"]

_AGAIN: Final = (
    exception.ServiceError,
    exception.InternalError,
    exception.ConnectionError,
    exception.TimeoutError,
    exception.ClientClosed,
    exception.InternalFailure,
    exception.DataLossError,
)
_STATUS: Final[dict[type[Exception], int | None]] = {
    exception.NotFoundError: 404,
    exception.AuthError: 401,
    exception.PermissionDeniedError: 401,
    **dict.fromkeys(_AGAIN, 503),
    modal.Error: 400,
}


def _answer(error: Exception) -> Answer | None:
    if not isinstance(error, exception.ResourceExhaustedError):
        return answer_by_class(error, _STATUS)
    # Too many requests come with how long to wait; a limit of the workspace does not.
    for detail in getattr(error, "_grpc_details", None) or ():
        if isinstance(detail, api_pb2.RPCRetryPolicy):
            return Answer(429, first_line(error), round(max(0.0, detail.retry_after_secs), 3))
    return Answer(403, first_line(error))


translated: Final = Translation(
    "Modal",
    "MODAL_TOKEN_ID and MODAL_TOKEN_SECRET",
    _answer,
    (ValueError, grpclib.GRPCError, StreamTerminatedError),
)
