"""HTTP to an ORS server: only what is safe is repeated, and every failure is one line of the right kind."""

from __future__ import annotations

import asyncio
import codecs
import json
import re
import uuid
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any, Final, TypeVar

import aiohttp

from benchflow_adapter_ors.address import OrsServer
from benchflow_core.errors import BenchflowError, CredentialRefused, InfrastructureError, TaskError

__all__ = ["EventParser", "OrsClient", "SessionGone", "connected"]

_BUSY: Final = (429, 502, 503, 504)
_NOT_STARTED: Final = (429, 503)
"""Answers of a server that has not begun what it was asked: even a tool call may be sent again."""
_TRIES: Final = 4
_LONGEST_PAUSE: Final = 30.0
_SILENCE: Final = 30.0
"""A server sends a comment every ten seconds while a tool runs: after this long the connection counts as lost."""
_CLOSING: Final = 15.0
_MOST: Final = 64 * 1024 * 1024
_T = TypeVar("_T")


class SessionGone(InfrastructureError):
    """The server has ended the session, or does not know it."""


class _Lost(Exception):
    """The connection ended before the answer did."""


class EventParser:
    """Server-sent events out of bytes, however they were cut on the way."""

    def __init__(self) -> None:
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._rest, self._event, self._data = "", "", list[str]()

    def feed(self, piece: bytes) -> Iterator[tuple[str, str]]:
        """The events (kind, data) that are complete with this piece."""
        *lines, self._rest = (self._rest + self._decode(piece)).replace("\r\n", "\n").split("\n")
        for line in lines:
            name, _, value = line.partition(":")
            value = value.removeprefix(" ")  # one space belongs to the format, any other to the data
            if not line:
                if self._event or self._data:
                    yield self._event, "\n".join(self._data)
                self._event, self._data = "", []
            elif name == "event":
                self._event = value
            elif name == "data":
                self._data.append(value)


class OrsClient:
    """Requests to one server, for one session or none."""

    def __init__(self, server: OrsServer, client: aiohttp.ClientSession, *, patience: float = 600.0) -> None:
        """`patience`: seconds that a server may say that it is still starting."""
        self._server, self._client, self._patience = server, client, patience
        self.sid: str | None = None

    async def ask(
        self, method: str, path: str, body: Any = None, *, headers: Mapping[str, str] | None = None, once: bool = False
    ) -> Any:
        """The answer's JSON. `once`: not repeated where the server may have begun what it was asked."""
        what = f"{method} {path}"
        async with self._answer(method, path, body, headers=headers, once=once) as response:
            text = await self._read(response, what)
        try:
            return json.loads(text)
        except ValueError:
            raise TaskError(f"{self._server} answered {what} with what is no JSON: {text[:120]!r}.") from None

    async def field(self, kind: type[_T], name: str, path: str, body: Any) -> _T:
        """One field of what a POST answers."""
        found = await self.ask("POST", path, body)
        value = found.get(name) if isinstance(found, dict) else None
        if not isinstance(value, kind):
            raise TaskError(f"{self._server} answered POST {path} without `{name}`: {found!r:.120}.")
        return value

    async def stream(self, path: str, body: Mapping[str, Any]) -> str:
        """What a streamed answer says, put together. A lost one is taken up again by its task id, never begun twice."""
        task_id, lost = "", 0
        while True:
            parts: list[str] = []
            try:
                async for kind, data in self._events(path, {**body, "task_id": task_id} if task_id else body, task_id):
                    if kind == "task_id":
                        task_id, lost = data.strip(), 0
                    elif kind == "chunk":
                        parts.append(data)
                    elif kind == "end":
                        return "".join([*parts, data]) or task_id
                    elif kind == "error":
                        raise self._stream_error(path, data)
                raise _Lost("the stream ended early")
            except _Lost as error:
                lost += 1
                if not task_id:
                    raise InfrastructureError(f"{self._server} was lost during POST {path}: {error}.") from None
                if lost > _TRIES:
                    raise InfrastructureError(f"{self._server} was lost during POST {path}, {lost} times.") from None
                await asyncio.sleep(0.2 * 2**lost)

    def _stream_error(self, path: str, data: str) -> BenchflowError:
        if data == "unknown task_id":
            return InfrastructureError(
                f"{self._server} has forgotten the call that it was asked for again: POST {path}."
            )
        return TaskError(f"the environment at {self._server} failed: {_line(data)}.")

    async def _events(self, path: str, body: Any, task_id: str) -> AsyncIterator[tuple[str, str]]:
        parser, size = EventParser(), 0
        timeout = aiohttp.ClientTimeout(total=None, sock_read=_SILENCE)
        async with self._answer("POST", path, body, timeout=timeout, once=not task_id) as response:
            try:
                async for piece in response.content.iter_any():
                    if (size := size + len(piece)) > _MOST:
                        raise self._too_much(f"POST {path}")
                    for event in parser.feed(piece):
                        yield event
            except (aiohttp.ClientError, TimeoutError, OSError) as error:
                raise _Lost(_line(error)) from None

    @asynccontextmanager
    async def _answer(
        self,
        method: str,
        path: str,
        body: Any,
        *,
        headers: Mapping[str, str] | None = None,
        timeout: aiohttp.ClientTimeout | None = None,
        once: bool,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """A good answer, after as many attempts as are safe."""
        what, tries, until = f"{method} {path}", 0, asyncio.get_running_loop().time() + self._patience
        while True:
            tries += 1
            pause: float
            try:
                response = await self._send(method, path, body, headers, timeout)
            except aiohttp.ClientConnectorError as error:  # nothing was sent
                if tries >= _TRIES:
                    raise InfrastructureError(
                        f"no ORS server answers at {self._server}: {_line(error.os_error)}."
                    ) from None
                pause = 0.3 * 2**tries
            except (aiohttp.ClientError, TimeoutError, OSError) as error:
                if once or tries >= _TRIES:
                    raise InfrastructureError(f"{self._server} did not answer {what}: {_line(error)}.") from None
                pause = 0.3 * 2**tries
            else:
                async with response:
                    if response.status == 200:
                        yield response
                        return
                    failure = self._failure(response, what, await self._read(response, what))
                    starting = response.headers.get("X-Backend-State") == "starting"
                    if response.status not in (_NOT_STARTED if once else _BUSY):
                        raise failure
                    if (starting and asyncio.get_running_loop().time() > until) or (not starting and tries >= _TRIES):
                        raise failure
                    pause = _retry_after(response, 0.5 * 2 ** min(tries, 5))
            await asyncio.sleep(pause)

    async def _send(
        self, method: str, path: str, body: Any, headers: Mapping[str, str] | None, timeout: Any
    ) -> aiohttp.ClientResponse:
        sent = {**self._server.headers(), **({"X-Session-ID": self.sid} if self.sid else {}), **(headers or {})}
        # A redirect could take the key, or a call, to another place: paths are written so that none is needed.
        more: dict[str, Any] = {"allow_redirects": False, "json": body, "headers": sent}
        more["timeout"] = timeout or aiohttp.ClientTimeout(total=None, sock_connect=20, sock_read=self._patience)
        return await self._client.request(method, self._server.base + path, **more)

    async def _read(self, response: aiohttp.ClientResponse, what: str) -> str:
        data = bytearray()
        try:
            async for piece in response.content.iter_any():
                data += piece
                if len(data) > _MOST:
                    raise self._too_much(what)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise InfrastructureError(f"{self._server} did not finish its answer to {what}: {_line(error)}.") from None
        return data.decode("utf-8", "replace")

    def _too_much(self, what: str) -> TaskError:
        return TaskError(f"{self._server} answers {what} with more than {_MOST // 2**20} MB.")

    def _failure(self, response: aiohttp.ClientResponse, what: str, text: str) -> BenchflowError:
        """401: the key. 404 and 410: the session is gone. 429 and gateways: later. Else: its defect."""
        status, said = response.status, _line(_detail(text)) or response.reason or "no reason given"
        shown = f"{self._server} answered {what} with {status}: {said}."
        if status in (401, 403):
            remedy = f"Set {self._server.key_variable}."
            return CredentialRefused(shown, remedy=remedy)
        if self.sid and (status == 410 or (status == 404 and "Active environment" in said)):
            return SessionGone(f"{self._server} has ended the session: {said}.")
        return InfrastructureError(shown) if status in _BUSY else TaskError(shown, details={"status": status})


@asynccontextmanager
async def connected(server: OrsServer, *, patience: float = 600.0) -> AsyncIterator[OrsClient]:
    """A session id and the way to its server. However this ends, the server is told that it is over."""
    # The proxy settings of this process count, cookies do not.
    async with aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar(), trust_env=True) as client:
        wire = OrsClient(server, client, patience=patience)
        wire.sid = await _new_id(wire)
        try:
            yield wire
        finally:
            with suppress(BenchflowError, TimeoutError):
                async with asyncio.timeout(_CLOSING):
                    await wire.ask("POST", "/delete")
                    await wire.ask("POST", "/delete_session")


async def _new_id(wire: OrsClient) -> str:
    """A hosted server hands out ids of its own; where nobody does, any will do."""
    try:
        found = await wire.stream("/create_session", {})
    except TaskError as error:
        if error.details.get("status") not in (404, 405):
            raise
        found = ""
    with suppress(ValueError, KeyError):
        found = str(json.loads(found)["sid"]) if found.startswith("{") else found
    return found if re.fullmatch(r"[!-z]{1,200}", found) else str(uuid.uuid4())


def _detail(text: str) -> str:
    """FastAPI's way of saying why."""
    try:
        found = json.loads(text)
    except ValueError:
        return text
    return str(found.get("detail", text)) if isinstance(found, dict) else text


def _line(said: object) -> str:
    """One printable line of what somebody else's program said."""
    text = str(said) or type(said).__name__
    return " ".join("".join(c if c.isprintable() else " " for c in text).split()).rstrip(".")[:300]


def _retry_after(response: aiohttp.ClientResponse, default: float) -> float:
    said = response.headers.get("Retry-After", "").strip()
    return min(float(said) if said.isdecimal() else default, _LONGEST_PAUSE)
