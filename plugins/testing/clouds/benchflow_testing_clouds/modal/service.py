"""What every call goes through: is it known and allowed, is something to go wrong with it, does it fit the schema."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, MutableMapping
from typing import Any, Final

from google.protobuf.message import Message
from google.protobuf.unknown_fields import UnknownFieldSet
from grpclib import GRPCError, Status
from grpclib.const import Cardinality, Handler
from modal_proto import api_pb2

from benchflow_core.errors import BenchflowError
from benchflow_testing_clouds.ledger import Fault, Ledger

__all__ = ["GrpcService", "Mapping", "abort"]

_STATUS: Final = {
    400: Status.INVALID_ARGUMENT,
    401: Status.UNAUTHENTICATED,
    403: Status.PERMISSION_DENIED,
    404: Status.NOT_FOUND,
    409: Status.FAILED_PRECONDITION,
    429: Status.RESOURCE_EXHAUSTED,
    500: Status.INTERNAL,
    503: Status.UNAVAILABLE,
}
"""Faults are asked for in the words of HTTP, as with the other vendors."""


_WORKING: Final[set[asyncio.Task[None]]] = set()


def abort(stream: Any) -> None:
    """Cut the connection under a call."""
    stream._stream._transport.abort()


class GrpcService:
    """One of the vendor's services: a method here answers the call of its name; without one it is a violation."""

    base: type[Any]
    """The vendor's generated class."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger

    def authorize(self, name: str, metadata: Any) -> None:
        raise NotImplementedError

    async def dies(self, request: Any) -> None:
        """A fault: the box that a request is about ends."""

    def __getattr__(self, name: str) -> Any:
        if name[:1].isupper():  # a call that the vendor has and this server has not
            return None
        raise AttributeError(name)

    def __mapping__(self) -> dict[str, Handler]:
        found = self.base.__mapping__(self)
        return {path: handler._replace(func=self._wrapped(path, handler)) for path, handler in found.items()}

    def _wrapped(self, path: str, handler: Handler) -> Callable[[Any], Awaitable[None]]:
        name, call = path.rpartition("/")[2], handler.func

        async def handle(stream: Any) -> None:
            fault = self.ledger.count(name)
            if call is None:
                self.ledger.violation(f"{path}: the vendor has it, this server has not")
                raise GRPCError(Status.UNIMPLEMENTED, f"{name} is not implemented here")
            self.authorize(name, stream.metadata)
            request = await stream.recv_message()
            if _unknown(request):
                self.ledger.violation(f"{path}: fields that the vendor does not know")
            began = self.ledger.enter(name)
            try:
                if fault is not None:
                    await self._break(stream, request, fault)
                if handler.cardinality is Cardinality.UNARY_UNARY:
                    await _finished(call(stream, request, fault))
                else:
                    await call(stream, request, fault)
            except BenchflowError as error:
                raise GRPCError(Status.UNAVAILABLE, f"the sandbox does not answer: {error.message}") from error
            finally:
                self.ledger.leave(name, began)

        return handle

    async def _break(self, stream: Any, request: Any, fault: Fault) -> None:
        if fault.die:
            await self.dies(request)
        if fault.status:
            policy = None if fault.retry_after is None else [api_pb2.RPCRetryPolicy(retry_after_secs=fault.retry_after)]
            raise GRPCError(_STATUS[fault.status], fault.body or f"fault {fault.status}", policy)
        if fault.drop:
            abort(stream)
            await asyncio.sleep(3600)  # ended with the connection
        if fault.delay:
            await asyncio.sleep(fault.delay)


def _unknown(message: Message) -> bool:
    """Whether it holds fields that the vendor's schema has not, at any depth."""
    if len(UnknownFieldSet(message)):
        return True
    for field, value in message.ListFields():
        values = value.values() if isinstance(value, MutableMapping) else value if field.is_repeated else [value]
        if field.message_type and any(_unknown(one) for one in values if isinstance(one, Message)):
            return True
    return False


async def _finished(call: Coroutine[Any, Any, None]) -> None:
    """A connection that is cut ends the wait for an answer, not the work: with the vendor that is somewhere else."""
    task = asyncio.ensure_future(call)
    _WORKING.add(task)
    task.add_done_callback(_forget)
    await asyncio.shield(task)


def _forget(task: asyncio.Task[None]) -> None:
    _WORKING.discard(task)
    if not task.cancelled():
        task.exception()  # seen: there may be nobody left to tell


class Mapping(dict[str, Handler]):
    """A path that is in none of the vendor's services is a violation."""

    def __init__(self, known: dict[str, Handler], ledger: Ledger) -> None:
        super().__init__(known)
        self._ledger = ledger

    def get(self, path: str, default: Any = None) -> Any:
        if path not in self:
            self._ledger.violation(f"{path}: no such call")
        return super().get(path, default)
