"""The client's side of a session: what the agent tells and asks, recorded and answered.

Events have the kinds of ACP's updates, unknown ones included, with the update as it came. Beside them:
`session_started`, `permission_request` (with the `outcome` we sent), `elicitation_request` (with our `response`),
`question_open` (one of these two, while somebody thinks about it),
`client_request` (files, terminals and whatever we refused), `notification` (those that are no updates),
`replayed_update` (of a loaded session), `turn_cancelled`, and `unknown_update` for an update without a usable kind.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from benchflow_acp.boxes import BoxMethods, MethodError
from benchflow_acp.connection import Connection, Peer
from benchflow_acp.permissions import CANCELLED, choose_option, selected
from benchflow_acp.usage import session_cost
from benchflow_core.contracts.agents import SessionEvent
from benchflow_core.contracts.sessions import SessionOptions
from benchflow_core.errors import BenchflowError

__all__ = ["Client"]

_METHOD_NOT_FOUND = -32601
_INTERNAL_ERROR = -32603
_MAX_AT_ONCE = 256
_MAX_OPEN_CALLS = 4096
_MAX_KIND = 64
_MAX_RECORDED = 4096

_OURS = frozenset(
    """
    agent_launch client_request driver_app_failed driver_serves elicitation_request error model_issued notice
    notification outbox_message outbox_refused permission_request phase_finished phase_started question_open
    replayed_update restored reward rollout_finished rollout_started scene_stopped service_log session_closed
    session_opened session_started soft_verify_finished soft_verify_started step_finished step_started
    turn_cancelled turn_finished turn_started verifier_failed verifier_isolation
    """.split()  # noqa: SIM905 - a line each would fill a page
)
"""Kinds of events that only we write: an update cannot pass for one of them."""


class Client(Peer):
    """Turns everything the agent sends into events, and answers its requests."""

    def __init__(self, options: SessionOptions) -> None:
        self._options = options
        self._boxes = BoxMethods(options.client_files) if options.client_files else None
        self._tasks: set[asyncio.Task[None]] = set()
        self._questions: set[asyncio.Task[None]] = set()
        self._open_calls: set[str] = set()
        self.connection: Connection
        self.session_id = ""
        self.replaying = False
        self.cost: float | None = None

    @property
    def busy(self) -> bool:
        """Whether silence is to be expected: a tool runs, or the agent waits for us."""
        return bool(self._open_calls or self._tasks)

    @property
    def open_calls(self) -> list[str]:
        return sorted(self._open_calls)[:20]

    def end_turn(self) -> None:
        self._open_calls.clear()

    def cancel_questions(self) -> None:
        """ACP: a cancelled turn answers its open permission requests with `cancelled`."""
        for task in self._questions:
            task.cancel()

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._boxes is not None:
            await self._boxes.close()

    # --- what it tells -------------------------------------------------------------------------------------

    def on_notification(self, method: str, params: dict[str, Any]) -> None:
        if method == "session/update" and isinstance(params.get("update"), dict):
            self._on_update(params)
        else:
            self._emit("notification", {"method": method, "params": params})

    def _on_update(self, params: dict[str, Any]) -> None:
        update: dict[str, Any] = params["update"]
        kind = update.get("sessionUpdate")
        if not isinstance(kind, str) or kind in _OURS or not 0 < len(kind) <= _MAX_KIND:
            kind = "unknown_update"
        if kind == "tool_call" or kind == "tool_call_update":
            self._follow(update)
        elif kind == "usage_update":
            cost = session_cost(update)
            self.cost = self.cost if cost is None else cost
        around = {k: v for k, v in params.items() if k != "update" and not (k == "sessionId" and self._is_ours(v))}
        data = {**update, "_notification": around} if around else update
        self._emit("replayed_update" if self.replaying else kind, data)

    def _is_ours(self, session_id: Any) -> bool:
        return not self.session_id or session_id == self.session_id

    def _follow(self, update: Mapping[str, Any]) -> None:
        call_id, status = update.get("toolCallId"), update.get("status")
        if not isinstance(call_id, str):
            return
        if status in ("completed", "failed"):
            self._open_calls.discard(call_id)
        elif (status is not None or update.get("sessionUpdate") == "tool_call") and len(
            self._open_calls
        ) < _MAX_OPEN_CALLS:
            self._open_calls.add(call_id)

    def _emit(self, kind: str, data: Mapping[str, Any]) -> None:
        self._options.emit(SessionEvent(kind, data))

    # --- what it asks --------------------------------------------------------------------------------------

    def on_request(self, request_id: Any, method: str, params: dict[str, Any]) -> None:
        if method == "session/update":
            self.on_notification(method, params)
            self.connection.reply(request_id, {})
        elif method == "session/request_permission":
            self._on_permission(request_id, params)
        elif method == "elicitation/create":
            self._on_elicitation(request_id, params)
        elif self._boxes is not None and self._boxes.handles(method):
            self._start(self._on_box_method(self._boxes, request_id, method, params), request_id)
        else:
            message = f"Method not found: {method}"
            self._emit("client_request", {"method": method, "params": params, "error": message})
            self.connection.refuse(request_id, _METHOD_NOT_FOUND, message)

    def _start(self, work: Any, request_id: Any) -> asyncio.Task[None] | None:
        if len(self._tasks) >= _MAX_AT_ONCE:
            work.close()
            self.connection.refuse(request_id, _INTERNAL_ERROR, f"more than {_MAX_AT_ONCE} requests at once")
            return None
        task: asyncio.Task[None] = asyncio.create_task(self._guarded(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _question(self, work: Any, request_id: Any) -> None:
        task = self._start(work, request_id)
        if task is not None:
            self._questions.add(task)
            task.add_done_callback(self._questions.discard)

    async def _guarded(self, work: Awaitable[None]) -> None:
        """A callback of ours that fails ends the session with its own error."""
        try:
            await work
        except Exception as error:
            self.connection.fail(error)

    def _on_permission(self, request_id: Any, params: dict[str, Any]) -> None:
        ask = self._options.on_permission
        if ask is not None:
            self._question(self._ask_permission(ask, request_id, params), request_id)
        else:
            self._permit(request_id, params, self._by_policy(params))

    def _by_policy(self, params: dict[str, Any]) -> str | None:
        return choose_option(self._options.permissions, params.get("options"))

    def _opened(self, about: str, what: Any) -> None:
        """For whoever watches: until it is answered there is nothing else to see."""
        self._emit("question_open", {"about": about, "what": str(what or "")[:_MAX_RECORDED]})

    async def _ask_permission(
        self, ask: Callable[[Mapping[str, Any]], Awaitable[str | None]], request_id: Any, params: dict[str, Any]
    ) -> None:
        chosen: str | None = None
        call = params.get("toolCall")
        self._opened("permission", call.get("title") if isinstance(call, dict) else None)
        try:
            chosen = await ask(params) or self._by_policy(params)
        finally:
            self._permit(request_id, params, chosen)

    def _permit(self, request_id: Any, params: dict[str, Any], option_id: str | None) -> None:
        outcome = selected(option_id, params.get("options")) if option_id is not None else CANCELLED
        self._emit("permission_request", {**params, "outcome": outcome})
        self.connection.reply(request_id, {"outcome": outcome})

    def _on_elicitation(self, request_id: Any, params: dict[str, Any]) -> None:
        if self._options.elicit is None:
            self._elicited(request_id, params, {"action": "decline"})
        else:
            self._question(self._ask_elicitation(self._options.elicit, request_id, params), request_id)

    async def _ask_elicitation(
        self,
        ask: Callable[[Mapping[str, Any]], Awaitable[Mapping[str, Any] | None]],
        request_id: Any,
        params: dict[str, Any],
    ) -> None:
        answer: dict[str, Any] = {"action": "cancel"}
        self._opened("elicitation", params.get("message"))
        try:
            content = await ask(params)
            answer = {"action": "decline"} if content is None else {"action": "accept", "content": dict(content)}
        finally:
            self._elicited(request_id, params, answer)

    def _elicited(self, request_id: Any, params: dict[str, Any], answer: dict[str, Any]) -> None:
        self._emit("elicitation_request", {**params, "response": answer})
        self.connection.reply(request_id, answer)

    async def _on_box_method(self, boxes: BoxMethods, request_id: Any, method: str, params: dict[str, Any]) -> None:
        try:
            result = await boxes.call(method, params)
        except MethodError as error:
            self._emit("client_request", {"method": method, "params": params, "error": error.message})
            self.connection.refuse(request_id, error.code, error.message)
        except BenchflowError as error:
            self.connection.refuse(request_id, _INTERNAL_ERROR, error.message)
            raise
        else:
            self._emit("client_request", {"method": method, "params": params, "result": _recorded(result)})
            self.connection.reply(request_id, result)


def _recorded(result: Mapping[str, Any]) -> dict[str, Any]:
    """Results without their bulk: an agent may ask for the same output again and again."""
    return {
        key: f"{value[:_MAX_RECORDED]}[... {len(value)} characters]"
        if isinstance(value, str) and len(value) > _MAX_RECORDED
        else value
        for key, value in result.items()
    }
