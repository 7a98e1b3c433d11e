"""One request to one response: find the method, check what was sent, run it in one transaction. Never raises."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs

from benchflow_claw_kit import batch, uploads
from benchflow_claw_kit.api import Call, Method
from benchflow_claw_kit.auth import check_scopes
from benchflow_claw_kit.contract import bad_mask
from benchflow_claw_kit.errors import ApiError, not_found
from benchflow_claw_kit.http import Request, Response, json_response
from benchflow_claw_kit.masks import BadMask, apply_mask, parse_mask
from benchflow_claw_kit.service import Service
from benchflow_claw_kit.store import Store

__all__ = ["Dispatcher"]

COMMON = frozenset(
    (
        *("$.xgafv", "$alt", "$callback", "$fields", "$httpMethod", "$key", "$prettyPrint", "$unique", "$userProject"),
        *(
            "access_token",
            "alt",
            "bearer_token",
            "callback",
            "fields",
            "key",
            "oauth_token",
            "prettyPrint",
            "quotaUser",
        ),
        *("trace", "upload_id", "upload_protocol", "uploadType", "userIp"),
    )
)
SECRET = frozenset({"access_token", "oauth_token", "bearer_token", "key"})


class Dispatcher:
    def __init__(self, service: Service, store: Store, require_auth: bool = False) -> None:
        self.service = service
        self.store = store
        self.require_auth = require_auth

    def __call__(self, request: Request) -> Response:
        try:
            if self.service.handle:
                return self._handled(request, self.service.handle)
            request = _overridden(request)
            if request.path == "/batch" or request.path.startswith("/batch/"):
                return batch.run(self, request)
            if request.path.startswith(("/upload/", "/resumable/upload/")):
                return uploads.run(self, request)
            return self.call(request)
        except ApiError as error:
            return self.service.render_error(error, request)
        except Exception:
            traceback.print_exc(file=sys.stderr)
            return self.service.render_error(ApiError(500, "Internal error encountered.", "backendError"), request)

    def _handled(self, request: Request, handle: Callable[[Request, Store], Response]) -> Response:
        try:
            response = handle(request, self.store)
        except ApiError as error:
            response = self.service.render_error(error, request)
        self._log(request.path.rsplit("/", 1)[-1], request, "", response)
        return response

    def find(self, request: Request) -> tuple[Method, dict[str, str]]:
        found = self.service.api.find("GET" if request.method == "HEAD" else request.method, request.path)
        if found is None:
            known = self.service.api.unanswered(request.method, request.path)
            if known:
                raise ApiError(501, f"{known} is not part of this mock.", "notImplemented")
            raise not_found("Not Found" if self.service.dialect == "legacy" else "Method not found.")
        return found

    def call(self, request: Request, media: bytes | None = None, media_type: str = "") -> Response:
        """`media` is what an upload brought; the request's body is then its metadata."""
        method, path = self.find(request)
        user, about = "", ""
        try:
            if media is None and len(request.body) > self.service.max_body:
                raise self.service.too_large
            principal = self.service.identify(request, self.store, self.require_auth)
            user = principal.user or ""
            check_scopes(principal, method.scopes)
            query = self._query(method, request)
            body = {} if method.verb in ("GET", "DELETE") else self.service.read_body(request, method)
            call = Call(self.service, self.store, request, method, path, query, principal, body, media, media_type)
            response = self._run(call)
            about = call.about
        except ApiError as error:
            response = self.service.render_error(error, request)
        self._log(method.id, request, user, response, about)
        return response

    def _run(self, call: Call) -> Response:
        mask = self._mask(call.method, call.request)
        if call.method.writes:
            with self.store.transaction():
                self.store.tick()
                value = call.method.handler(call)
        else:
            value = call.method.handler(call)
        return self._answer(call, value, mask)

    def _answer(self, call: Call, value: Any, mask: dict[str, Any]) -> Response:
        if isinstance(value, Response):
            return value
        if value is None:
            return Response(204)
        headers = {}
        etag = value.get("etag") if isinstance(value, dict) else None
        if etag and call.method.verb in ("GET", "POST", "PUT", "PATCH"):
            headers["ETag"] = etag
            if call.method.verb == "GET" and _matches(call.request.header("if-none-match"), etag):
                return Response(304, b"", headers)
        pretty = (call.request.first("prettyPrint") or call.request.first("$prettyPrint") or "true").lower()
        return json_response(apply_mask(value, mask), 200, headers, pretty not in ("false", "0"))

    def _query(self, method: Method, request: Request) -> dict[str, Any]:
        contract = self.service.api.contract
        if contract is None:
            return {name: values[0] for name, values in request.query.items()}
        alt = request.first("alt") or request.first("$alt") or "json"
        if alt not in ("json", "media", "proto"):
            raise ApiError(
                400, f"Invalid value '{alt}'. Allowed values: [json, media, proto]", "invalidParameter", location="alt"
            )
        if alt == "proto":
            raise ApiError(400, f"proto over HTTP is not allowed for service '{contract.name}.googleapis.com'.")
        if request.first("$.xgafv", "1") not in ("1", "2"):
            raise ApiError(
                400, "Invalid value at '$.xgafv'. Allowed values: [1, 2]", "invalidParameter", location="$.xgafv"
            )
        return self._declared(method, request)

    def _declared(self, method: Method, request: Request) -> dict[str, Any]:
        contract = self.service.api.contract
        assert contract is not None
        found: dict[str, Any] = {}
        for name, values in request.query.items():
            if name in method.query:
                found[name] = contract.parameter(name, method.query[name], values)
            elif name not in COMMON and self.service.dialect == "modern":
                message = (
                    f'Invalid JSON payload received. Unknown name "{name}": Cannot bind query parameter. '
                    f"Field '{name}' could not be found in request message."
                )
                raise ApiError(400, message, "invalid")
        for name in method.required:
            if name not in found:
                raise ApiError(400, f"Required parameter: {name}", "required", location=name)
        return found

    def _mask(self, method: Method, request: Request) -> dict[str, Any]:
        text = request.first("fields") or request.first("$fields")
        if not text:
            return {}
        try:
            mask = parse_mask(text)
        except BadMask:
            raise bad_mask(text, self.service.dialect) from None
        if self.service.api.contract:
            self.service.api.contract.check_mask(method.response, mask)
        return mask

    def _log(self, method: str, request: Request, user: str, response: Response, about: str = "") -> None:
        shown = "&".join(f"{name}={values[0]}" for name, values in request.query.items() if name not in SECRET)
        target = f"{request.path}?{shown}" if shown else request.path
        with self.store.transaction():
            self.store.insert(
                "_calls",
                at=self.store.now_ms(),
                method=method,
                verb=request.method,
                path=target[:500] + about,
                user=user,
                status=response.status,
                refused=response.refused,
            )


def _matches(header: str, etag: str) -> bool:
    return bool(header) and (header.strip() == "*" or etag in [part.strip() for part in header.split(",")])


def _overridden(request: Request) -> Request:
    """Apply `X-HTTP-Method-Override`: a POST whose form carries the query of a GET too long for a URL."""
    verb = request.header("x-http-method-override").upper()
    if request.method != "POST" or not verb:
        return request
    if verb == "GET" and request.content_type == "application/x-www-form-urlencoded":
        form = parse_qs(request.body.decode("utf-8", "replace"), keep_blank_values=True)
        return Request("GET", request.path, {**request.query, **form}, request.headers, b"")
    return Request(verb, request.path, request.query, request.headers, request.body)
