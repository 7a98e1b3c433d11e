"""One request on its way through, and what is written down of it."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

from benchflow_core.contracts import Exchange, ModelTarget, Usage
from benchflow_core.contracts.quick import dataclass
from benchflow_gateway_relay import failures
from benchflow_gateway_relay.keys import Key, cost_of
from benchflow_gateway_relay.paths import Route
from benchflow_gateway_relay.replies import WholeAnswer, read_reply

__all__ = ["CLIENT_CLOSED", "Conclusion", "Recording"]

_KEPT = 64 * 1024 * 1024
"""Of an answer. What is longer passes through, but is not put together."""
_SAID = 500
CLIENT_CLOSED = 499


@dataclass(frozen=True, slots=True)
class Conclusion:
    """How a request ended."""

    reply: WholeAnswer
    usage: Usage
    model: str | None
    kind: str | None = None
    """Of failure."""
    message: str | None = None


class Recording:
    """Collects a copy of what passes; `finish` writes it down, once."""

    def __init__(self, key: Key, route: Route, path: str) -> None:
        self.key = key
        self.route = route
        self.path = path
        self.started_at = time.time()
        self.raw = b""
        self.body: Mapping[str, Any] = {}
        self.model: str | None = None
        self.streamed = False
        self.answered_by: str | None = None
        self.target: ModelTarget | None = None
        self.status = CLIENT_CLOSED
        self.content_type = ""
        self.secondhand = False
        """The answer was put together between the provider and us: the model it names is the one that was asked for,
        a count of nothing at all is one that was lost on the way, and a cost is from somebody's price list."""
        self.replayed: Literal["", "exact", "like"] = ""
        self.recorded: Usage | None = None
        """What the recorded answer used then."""
        self.divergence: str | None = None
        self.truth: Conclusion | None = None
        """What happened at the provider, where somebody stands between it and us."""
        self._clock = time.perf_counter()
        self._chunks: list[bytes] = []
        self._size = 0
        self._failure: tuple[str, str] | None = None

    def answered(self, status: int, content_type: str) -> None:
        """The provider's headers are here."""
        self.status, self.content_type = status, content_type

    def ask_instead(self, model: str) -> None:
        """Send the request to another model than the one it names. A path that names one is built anew anyway."""
        self.answered_by = model
        if self.route.model is None:
            self.body = {**self.body, "model": model}
            self.raw = json.dumps(self.body, ensure_ascii=False).encode("utf-8", "surrogatepass")

    def keep(self, chunk: bytes) -> None:
        self._size += len(chunk)
        if self._size <= _KEPT:
            self._chunks.append(chunk)

    def failed(self, kind: str, message: str, status: int | None = None) -> None:
        """The first failure is the one that counts."""
        if self._failure is None:
            self._failure = kind, message
        self.status = status or self.status

    def finish(self) -> None:
        """To the log. A count of tokens is no exchange."""
        if self.route.kind != "answer" or self.route.wire is None:
            return
        end = self.conclude()
        exchange = Exchange(
            key_id=self.key.id,
            started_at=self.started_at,
            duration=time.perf_counter() - self._clock,
            wire=self.route.wire,
            path=self.path,
            request={},
            response=end.reply.response,
            status=self.status,
            usage=end.usage,
            requested_model=self.model,
            returned_model=end.model,
            answered_by=self.answered_by,
            streamed=self.streamed,
            error=None if end.message is None else end.message[:_SAID],
            error_type=end.kind,
            content_type=self.content_type,
            answer=self._as_sent() if self.key.request.record else None,
            replayed=self.replayed,
            divergence=self.divergence,
        )
        if self.target is not None:
            self.key.count(end.usage, estimate=(len(self.raw) + self._size) // 3)
        self.key.log.append(exchange, self.raw if self.body else b"{}")

    def conclude(self) -> Conclusion:
        """What the answer was and how it ended. What is known from the provider's own side counts before it."""
        reply = self._reply()
        kind, message = self._failure or self._judge(reply) or (None, None)
        if kind == "client_gone" and self.status == 200 and reply.ended:
            kind = message = None  # it had all it wanted
        truth = self.truth
        if truth is None:
            model = None if self.secondhand else reply.model
            return Conclusion(reply, self._usage(reply, kind), model, kind, message)
        if kind not in ("client_gone", "revoked") and truth.kind is not None:
            kind, message = truth.kind, truth.message
        return Conclusion(reply, truth.usage, truth.model, kind, message)

    def _as_sent(self) -> str:
        if self._size > _KEPT:
            return ""
        return b"".join(self._chunks).decode("utf-8", "replace")

    def _reply(self) -> WholeAnswer:
        assert self.route.wire is not None
        if self._size > _KEPT or not self._chunks:
            return WholeAnswer(None, Usage(), None, False)
        raw = b"".join(self._chunks)
        return read_reply(self.route.wire, raw, events=self.content_type.startswith("text/event-stream"))

    def _judge(self, reply: WholeAnswer) -> tuple[str, str] | None:
        """What the provider's answer says of itself."""
        if not 200 <= self.status < 300:
            said = failures.message_of(reply.response)
            return failures.of_status(self.status, reply.response), f"HTTP {self.status}: {said}".rstrip(": ")
        if self._size > _KEPT:
            return None
        if reply.response is None:
            return "not_a_model_api", f"HTTP {self.status} with {self.content_type or 'no content'}, not an answer"
        if (kind := failures.of_answer(reply.response)) is not None:
            return kind, failures.message_of(reply.response)
        if not reply.ended and self.streamed:
            return "stream_cut", "the stream ended before the answer did"
        return None

    def _usage(self, reply: WholeAnswer, failure: str | None) -> Usage:
        """Unknown stays unknown; what never reached a model, or was refused there, used nothing."""
        if self.target is None:
            return Usage(requests=0)
        if self.replayed:  # nobody was asked, nothing was paid
            return replace(self.recorded or reply.usage, cost_usd=0.0, source="recording")
        lost = self.secondhand and not reply.usage.input_tokens and not reply.usage.output_tokens
        if lost or reply.usage.source == "unavailable":
            spent = failure in (None, "client_gone", "revoked", "stream_cut")
            return Usage(requests=1, complete=not spent)
        if reply.usage.cost_usd is None or self.secondhand:
            return replace(reply.usage, cost_usd=cost_of(reply.usage, self.target.prices))
        return reply.usage
