"""Exchanges on disk, one JSON line each: memory does not grow with a rollout."""

from __future__ import annotations

import asyncio
import json
import os
from array import array
from collections.abc import AsyncIterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from benchflow_core.contracts import Exchange, Usage

__all__ = ["ExchangeLog"]

_BATCH = 1024 * 1024
_NAMES = tuple(f.name for f in fields(Exchange) if f.name not in ("request", "usage"))
_USAGE_NAMES = tuple(f.name for f in fields(Usage))
_ENCODE = json.JSONEncoder(ensure_ascii=False).encode


class ExchangeLog:
    """The exchanges of one key. The file is readable by its owner only: it holds prompts."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._places = array("Q")
        """Where each line begins: what was read before is not read again."""
        self._end = 0

    def append(self, exchange: Exchange, request: bytes) -> None:
        """`request` is the body as it came: it is written as it is, not made into JSON a second time."""
        plain = {name: getattr(exchange, name) for name in _NAMES}
        usage = {name: getattr(exchange.usage, name) for name in _USAGE_NAMES}
        head = _ENCODE({**plain, "usage": usage}).encode("utf-8", "replace")
        # Outside strings a line break is only space, and inside strings JSON has none.
        body = request.replace(b"\n", b" ").replace(b"\r", b" ") or b"{}"
        line = head[:-1] + b',"request":' + body + b"}\n"
        self._places.append(self._end)
        self._end += len(line)
        target = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            view = memoryview(line)
            while view:
                view = view[os.write(target, view) :]
        finally:
            os.close(target)

    async def read(self, since: int = 0) -> AsyncIterator[Exchange]:
        """What is written by now, without the first `since`. Lines are read off the loop, a batch at a time."""
        position = self._places[since] if since < len(self._places) else self._end
        while True:
            lines, position = await asyncio.to_thread(self._lines, position)
            if not lines:
                return
            for line in lines:
                yield _exchange(json.loads(line))

    def _lines(self, position: int) -> tuple[list[bytes], int]:
        try:
            with self._path.open("rb") as file:
                file.seek(position)
                lines = file.readlines(_BATCH)
        except FileNotFoundError:
            return [], position
        if lines and not lines[-1].endswith(b"\n"):  # being written
            lines.pop()
        return lines, position + sum(map(len, lines))


def _exchange(value: Mapping[str, Any]) -> Exchange:
    return Exchange(**{**value, "usage": Usage(**value["usage"])})
