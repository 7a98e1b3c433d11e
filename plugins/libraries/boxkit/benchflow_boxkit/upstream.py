"""The proxy this machine itself has to use, where it has one: ours then goes on through it."""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections.abc import Mapping
from urllib.parse import unquote, urlsplit

from benchflow_core.contracts.quick import dataclass

__all__ = ["Streams", "Upstream"]

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@dataclass(frozen=True, slots=True)
class Upstream:
    host: str
    port: int
    tls: bool = False
    credential: str = ""
    """For `Proxy-Authorization`. It stays outside the boxes."""
    direct: tuple[str, ...] = ()
    """Names and suffixes that are reached without it."""

    @classmethod
    def of(cls, env: Mapping[str, str]) -> Upstream | None:
        """From `https_proxy`, `http_proxy`, `all_proxy` and `no_proxy`, in either case."""
        low = {name.lower(): value for name, value in env.items() if value}
        url = urlsplit(low.get("https_proxy") or low.get("http_proxy") or low.get("all_proxy") or "")
        if url.scheme not in ("http", "https") or not url.hostname:
            return None
        direct = tuple(part.strip().lower().lstrip("*.") for part in low.get("no_proxy", "").split(",") if part.strip())
        pair = f"{unquote(url.username or '')}:{unquote(url.password or '')}"
        credential = base64.b64encode(pair.encode()).decode() if url.username else ""
        tls = url.scheme == "https"
        return cls(url.hostname, url.port or (443 if tls else 80), tls, credential, direct)

    def serves(self, host: str) -> bool:
        name = host.lower().rstrip(".")
        return not any(part == "" or name == part or name.endswith(f".{part}") for part in self.direct)

    @property
    def header(self) -> str:
        return f"Proxy-Authorization: Basic {self.credential}\r\n" if self.credential else ""

    async def open(self) -> Streams:
        return await asyncio.open_connection(
            self.host, self.port, ssl=ssl.create_default_context() if self.tls else None
        )

    async def tunnel(self, host: str, port: int) -> Streams | None:
        """A connection to `host` through it, or nothing when it refuses."""
        reader, writer = await self.open()
        name = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        writer.write(f"CONNECT {name} HTTP/1.1\r\nHost: {name}\r\n{self.header}\r\n".encode())
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            head = b""
        if head.split(b" ", 2)[1:2] != [b"200"]:
            writer.close()
            return None
        return reader, writer
