"""A live ACP conversation: turns, their end, and how they are stopped."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from benchflow_acp.client import Client
from benchflow_acp.connection import Connection, RpcError
from benchflow_acp.usage import turn_usage
from benchflow_core.contracts.agents import PromptOutcome, SessionEvent
from benchflow_core.contracts.sessions import SessionOptions
from benchflow_core.errors import (
    AgentCrashed,
    AgentError,
    AgentProtocolError,
    AgentTimeout,
    BenchflowError,
    ConnectionLost,
    TransportError,
)

__all__ = ["AUTH_REQUIRED", "AcpSession", "protocol_error"]

AUTH_REQUIRED = -32000
_MAX_TOLD = 400
_MAX_REASON = 64


class AcpSession:
    """Satisfies `contracts.agents.Session`. One turn at a time."""

    def __init__(
        self, session_id: str, connection: Connection, client: Client, options: SessionOptions, info: Mapping[str, Any]
    ) -> None:
        self.info = info
        """What the agent said of itself: `initialize` and `session` as answered, `settings` as we chose them."""
        self._id = session_id
        self._connection = connection
        self._client = client
        self._options = options
        self._turn: asyncio.Future[Any] | None = None
        self._cancelled = False
        self._cost: float | None = None

    @property
    def id(self) -> str:
        return self._id

    async def prompt(self, text: str) -> PromptOutcome:
        if self._turn is not None:
            raise RuntimeError("a turn is running: one prompt at a time")
        self._cancelled = False
        blocks = [{"type": "text", "text": text}]
        alive = self._connection.failure is None
        turn = self._connection.request("session/prompt", {"sessionId": self._id, "prompt": blocks})
        mark = self._connection.mark
        self._turn = turn
        try:
            return self._outcome(await self._wait(turn))
        except (asyncio.CancelledError, AgentTimeout):
            await self._stop(turn)
            raise
        except RpcError as error:
            if self._cancelled:
                return PromptOutcome("cancelled", data={"error": {"code": error.code, "message": error.message}})
            raise protocol_error(error) from None
        except (AgentError, TransportError) as error:
            if not alive or not self._connection.delivered(mark):
                raise _not_delivered(error) from error
            if isinstance(error, TransportError):
                raise ConnectionLost(error.message, remedy=error.remedy, details=error.details) from error
            if self._cancelled:
                return PromptOutcome("cancelled", data={"answered": False})
            raise
        finally:
            self._turn = None
            self._client.end_turn()

    async def cancel(self) -> None:
        """Asks the turn to stop; kills the agent when it has not within the grace time. No turn: nothing happens."""
        if self._turn is not None and not self._turn.done():
            self._cancelled = True
            await self._stop(self._turn)

    async def leave(self, grace: float = 2.0, end: Callable[[], Awaitable[None]] | None = None) -> bool:
        """Like `close`, but what the agent started lives on, if the agent itself ends at the end of its input.

        `end` is called for one that does not within the grace time, to end that one process. Whether it ended: one
        that still does not is killed with everything it started.
        """
        ended = await self._connection.leave(grace, end)
        await self.close()
        return ended

    async def close(self) -> None:
        await self._connection.close()
        await self._client.close()

    async def _wait(self, turn: asyncio.Future[Any]) -> Any:
        """The answer, or `AgentTimeout` once nothing was heard for too long although nothing runs."""
        limit = self._options.idle_timeout
        clock = asyncio.get_running_loop().time
        while True:
            left = None if limit is None else max(self._connection.last_message + limit - clock(), 0.01)
            await asyncio.wait({turn}, timeout=left if not self._client.busy else limit)
            if turn.done():
                return turn.result()
            silent = clock() - self._connection.last_message
            if limit is not None and silent >= limit and not self._client.busy:
                raise AgentTimeout(
                    f"the agent was silent for {silent:.0f} s with no tool call open.",
                    details={"reason": "idle", "idle_seconds": round(silent, 3), "timeout": limit},
                )

    async def _stop(self, turn: asyncio.Future[Any]) -> None:
        """session/cancel, a grace time, then the kill: also when this itself is cancelled."""
        self._connection.notify("session/cancel", {"sessionId": self._id})
        self._client.cancel_questions()
        open_calls = self._client.open_calls
        try:
            await asyncio.wait({turn}, timeout=self._options.cancel_grace)
        finally:
            answered = turn.done()
            if not answered:
                await self._connection.kill()
            error = None if not answered or turn.cancelled() else turn.exception()
            result = turn.result() if answered and error is None else None
            data = {"answered": answered and error is None, "open_tool_calls": open_calls, "response": result}
            self._options.emit(SessionEvent("turn_cancelled", data))

    def _outcome(self, result: Any) -> PromptOutcome:
        answer: dict[str, Any] = result if isinstance(result, dict) else {}
        reason = answer.get("stopReason")
        before, self._cost = self._cost, self._client.cost
        cost = None if self._cost is None else max(self._cost - (before or 0.0), 0.0)
        known = isinstance(reason, str) and 0 < len(reason) <= _MAX_REASON
        return PromptOutcome(str(reason) if known else "unknown", usage=turn_usage(answer, cost), data=answer)


def _not_delivered(error: AgentError | TransportError) -> AgentError:
    """The agent ended before the prompt reached it. A box that is gone with it is found out by whoever uses it next."""
    kind = type(error) if isinstance(error, AgentError) else AgentCrashed
    return kind(error.message, remedy=error.remedy, details={**error.details, "delivered": False})


def protocol_error(error: RpcError) -> BenchflowError:
    """The agent's own refusal, by its code."""
    details = {"method": error.method, "code": error.code, "message": error.message, "data": error.data}
    if error.code == AUTH_REQUIRED:
        details["auth_required"] = True
    said = " ".join([error.message, *_more(error.data)])
    return AgentProtocolError(f"the agent answered {error.method} with error {error.code}: {said}", details=details)


def _more(data: Any) -> list[str]:
    """Where an agent's error is only `Internal error`, what it was is often beside it."""
    told = data.get("details") or data.get("message") if isinstance(data, dict) else data
    return [f"({' '.join(told.split())[:_MAX_TOLD]})"] if isinstance(told, str) and told.strip() else []
