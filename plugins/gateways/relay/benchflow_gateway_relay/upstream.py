"""The provider's side: addresses, credentials, headers and proxies."""

from __future__ import annotations

import io
import urllib.request
from collections.abc import Iterable, Mapping
from ipaddress import ip_address
from urllib.parse import urlsplit

import aiohttp
from multidict import CIMultiDictProxy
from yarl import URL

from benchflow_core.contracts import ModelTarget
from benchflow_gateway_relay.keys import OpenedModel
from benchflow_gateway_relay.paths import Route, upstream_url
from benchflow_gateway_relay.redaction import KeyFilter

__all__ = ["BROKEN", "ProviderClient", "credential_of", "headers_back"]

BROKEN = (aiohttp.ClientError, TimeoutError, OSError)
"""What a request to a provider fails with."""
_FORWARDED = ("accept", "anthropic-beta", "anthropic-version", "content-type", "openai-beta", "user-agent")
"""Of the client's headers. Others could name another account, project or host."""
_QUERY = ("alt", "$alt", "beta", "api-version")
_RETURNED = frozenset(
    {"content-type", "retry-after", "retry-after-ms", "request-id", "x-request-id", "x-should-retry", "cache-control"}
)
_RETURNED_PREFIXES = ("x-ratelimit-", "anthropic-ratelimit-")
_LARGE = 512 * 1024


def credential_of(target: ModelTarget, env: Mapping[str, str]) -> str:
    """The provider's key, or nothing."""
    return next((env[name] for name in target.credential_env if env.get(name)), "")


class ProviderClient:
    """One connection pool for all providers of a job."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._proxies = _proxies(env)
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=60.0),
            cookie_jar=aiohttp.DummyCookieJar(),
            skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding", "Content-Type"),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=30.0, sock_read=1800.0),
            read_bufsize=256 * 1024,
        )

    async def post(
        self,
        opened: OpenedModel,
        route: Route,
        body: bytes,
        headers: Mapping[str, str],
        query: Mapping[str, str],
        *,
        marks: Mapping[str, str] | None = None,
    ) -> aiohttp.ClientResponse:
        """Redirects are not followed: the credential goes to the configured host and nowhere else.

        `marks` are headers of our own.
        """
        url = upstream_url(opened.target, route)
        asked = {name: query[name] for name in _QUERY if name in query}
        return await self._session.post(
            URL(url, encoded=True).with_query(asked),
            data=io.BytesIO(body) if len(body) > _LARGE else body,
            headers={**_headers_out(headers, opened.target, opened.credential), **(marks or {})},
            proxy=_proxy_for(url, self._proxies),
            allow_redirects=False,
        )

    async def close(self) -> None:
        await self._session.close()


def _headers_out(headers: Mapping[str, str], target: ModelTarget, credential: str) -> dict[str, str]:
    out = {name: headers[name] for name in _FORWARDED if name in headers}
    # Uncompressed: a compressor would hold events back. What is compressed nevertheless is unpacked here, or the key
    # could pass in it unseen.
    out |= {"content-type": "application/json", "accept-encoding": "identity"}
    if not credential:
        return out
    if target.auth == "bearer" or target.wire in ("chat", "responses"):
        out["authorization"] = f"Bearer {credential}"
    else:
        out["x-api-key" if target.wire == "messages" else "x-goog-api-key"] = credential
    return out


def headers_back(headers: CIMultiDictProxy[str], hidden: KeyFilter) -> dict[str, str]:
    """Return the provider's headers that mean something to a client, without the key."""
    named = {name.lower(): value for name, value in headers.items()}
    return {
        name: hidden.whole(value.encode("utf-8", "surrogateescape")).decode("utf-8", "surrogateescape")
        for name, value in named.items()
        if name in _RETURNED or name.startswith(_RETURNED_PREFIXES)
    }


def _proxies(env: Mapping[str, str]) -> dict[str, str]:
    names: Iterable[str] = ("http", "https", "no")
    found = {name: env.get(f"{name}_proxy") or env.get(f"{name.upper()}_PROXY") for name in names}
    return {name: value for name, value in found.items() if value}


def _proxy_for(url: str, proxies: Mapping[str, str]) -> str | None:
    """As curl has it; loopback is never sent to a proxy."""
    parts = urlsplit(url)
    proxy = proxies.get(parts.scheme)
    host = parts.hostname or ""
    if proxy is None or _is_loopback(host):
        return None
    bypass = urllib.request.proxy_bypass_environment(parts.netloc, dict(proxies))  # type: ignore[attr-defined]
    return None if bypass else proxy


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
