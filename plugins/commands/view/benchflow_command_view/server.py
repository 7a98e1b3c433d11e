"""A read-only server on the loopback interface.

Who may read: whoever has the token, which is part of every address. A request for another host name is refused, so that
no page of somebody else's can be made to point here. Everything but the page itself is JSON.
"""

from __future__ import annotations

import gzip
import hmac
import json
import secrets
from collections.abc import Callable, Mapping
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from benchflow_command_view import assets
from benchflow_command_view.documents import Documents
from benchflow_command_view.live import live_events
from benchflow_core.errors import BenchflowError, ConfigurationError

__all__ = ["ViewServer"]

_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
    "trusted-types 'none'"
)
_HEADERS: Final = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
}
_SMALL: Final = 1400
_LARGE: Final = 100_000
_PAGE_HEAD: Final = '<link rel="stylesheet" href="style.css">'
_PAGE_BODY: Final = '<script src="app.js" defer></script>'


class ViewServer(ThreadingHTTPServer):
    """Serves until `shutdown`. One thread per connection, none outlives the process."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, documents: Documents, port: int = 0, note: Callable[[str], None] = lambda line: None) -> None:
        self.documents, self.note = documents, note
        self.packed: dict[str, tuple[Any, bytes]] = {}
        self.token = secrets.token_urlsafe(24)
        try:
            super().__init__(("127.0.0.1", port), _Handler)
        except (OSError, OverflowError) as error:
            why = getattr(error, "strerror", None) or error
            raise ConfigurationError(
                f"cannot listen on port {port} of 127.0.0.1: {why}.", remedy="Choose another --port, or none."
            ) from error
        self.hosts = {f"{name}:{self.server_port}" for name in ("127.0.0.1", "localhost", "[::1]")}

    def warm(self) -> None:
        """Make the first page's document before it is asked for, beside everything else."""
        Thread(target=self._warm, daemon=True).start()

    def _warm(self) -> None:
        with suppress(Exception):
            self.documents.get(self.documents.catalogue.opens.lstrip("/"))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/{self.token}/"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A reader that went away in the middle is nobody's mistake."""


def _encoded(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str).encode("utf-8", "replace")


class _Handler(BaseHTTPRequestHandler):
    server: ViewServer
    server_version, sys_version = "benchflow-view", ""
    protocol_version = "HTTP/1.1"
    timeout = 120
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        self._answer()

    def do_HEAD(self) -> None:
        self._answer()

    def _refuse(self) -> None:
        self._send(
            HTTPStatus.METHOD_NOT_ALLOWED, b"This server can only be read.\n", "text/plain", {"Allow": "GET, HEAD"}
        )
        self.close_connection = True

    do_POST = do_PUT = do_DELETE = do_PATCH = do_OPTIONS = do_TRACE = do_CONNECT = _refuse

    def _answer(self) -> None:
        if self.headers.get("Host", "") not in self.server.hosts:
            self._plain(HTTPStatus.MISDIRECTED_REQUEST, "This address is for 127.0.0.1 only.")
            return
        given, _, rest = urlsplit(self.path).path.lstrip("/").partition("/")
        if not hmac.compare_digest(given.encode(), self.server.token.encode()):
            self._plain(HTTPStatus.FORBIDDEN, "The address lacks its token: use the one that bench view printed.")
            return
        try:
            self._serve(rest)
        except KeyError:
            self._plain(HTTPStatus.NOT_FOUND, "There is no such thing here.")
        except BenchflowError as error:
            self._json({"error": str(error)}, HTTPStatus.UNPROCESSABLE_ENTITY)
        except ConnectionError:
            self.close_connection = True
        except Exception as error:
            self.server.note(f"{rest}: {type(error).__name__}: {error}")
            self._json({"error": f"{type(error).__name__}: {error}"}, HTTPStatus.INTERNAL_SERVER_ERROR)

    def _serve(self, rest: str) -> None:
        if rest == "":
            body = assets.page().replace("{{head}}", _PAGE_HEAD).replace("{{body}}", _PAGE_BODY)
            self._send(HTTPStatus.OK, body.encode(), "text/html")
        elif rest == "app.js":
            self._send(HTTPStatus.OK, assets.script().encode(), "text/javascript")
        elif rest == "style.css":
            self._send(HTTPStatus.OK, assets.style().encode(), "text/css")
        elif rest.startswith("data/") and rest.endswith(".json"):
            self._document(unquote(rest[5:-5]))
        elif rest == "live" or rest.startswith("live/"):
            self._stream(unquote(rest).split("/")[1:])
        else:
            raise KeyError(rest)

    # --- answers ----------------------------------------------------------------------------------------------

    def _document(self, key: str) -> None:
        """A large one that did not change is packed once."""
        value = self.server.documents.get(key)
        known = self.server.packed.get(key)
        if known is None or known[0] is not value:
            known = (value, _encoded(value))
            if len(known[1]) > _LARGE:
                self.server.packed.clear()
                self.server.packed[key] = known
        self._send(HTTPStatus.OK, known[1], "application/json")

    def _json(self, value: Any, status: HTTPStatus = HTTPStatus.OK) -> None:
        self._send(status, _encoded(value), "application/json")

    def _plain(self, status: HTTPStatus, text: str) -> None:
        self._send(status, f"{text}\n".encode(), "text/plain")

    def _send(self, status: HTTPStatus, body: bytes, kind: str, more: Mapping[str, str] | None = None) -> None:
        headers = {"Content-Type": f"{kind}; charset=utf-8", **(more or {})}
        if len(body) > _SMALL and "gzip" in self.headers.get("Accept-Encoding", ""):
            body = gzip.compress(body, 1)
            headers["Content-Encoding"] = "gzip"
        self._head(status, {**headers, "Content-Length": str(len(body))})
        if self.command != "HEAD":
            self.wfile.write(body)

    def _head(self, status: HTTPStatus, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in {**_HEADERS, **headers}.items():
            self.send_header(name, value)
        self.end_headers()

    def _stream(self, names: list[str]) -> None:
        messages = live_events(self.server.documents, names)
        self._head(HTTPStatus.OK, {"Content-Type": "text/event-stream; charset=utf-8", "Connection": "close"})
        self.close_connection = True
        if self.command == "HEAD":
            return
        for message in messages:
            self.wfile.write(message)
            self.wfile.flush()

    def log_message(self, format: str, *args: Any) -> None:
        """Addresses hold the token: nothing is logged."""
