"""Taking the provider's key out of what the provider sends back."""

from __future__ import annotations

import json
import re
from urllib.parse import quote

__all__ = ["KeyFilter"]

_MARK = b"[redacted]"
_SHORTEST = 8
"""Shorter credentials are words, not secrets: `EMPTY`."""


class KeyFilter:
    """Replaces a key in bytes that arrive in chunks. It has no memory of bytes that cannot be part of the key."""

    def __init__(self, key: str) -> None:
        self._forms = sorted(_forms(key), key=len, reverse=True) if len(key) >= _SHORTEST else []
        self._pattern = re.compile(b"|".join(map(re.escape, self._forms))) if self._forms else None
        self._held = b""

    def whole(self, data: bytes) -> bytes:
        """Return `data` without the key."""
        return self._pattern.sub(_MARK, data) if self._pattern else data

    def feed(self, chunk: bytes) -> bytes:
        """Return what may go on now: everything but an end that may be the beginning of the key."""
        clean = self.whole(self._held + chunk)
        end = len(clean) - self._open_end(clean)
        self._held = clean[end:]
        return clean[:end]

    def rest(self) -> bytes:
        """Return what was held back; the stream is over, so it is not the key."""
        held, self._held = self._held, b""
        return held

    def _open_end(self, data: bytes) -> int:
        """Return the length of the longest end of `data` with which a form of the key begins."""
        longest = len(self._forms[0]) - 1 if self._forms else 0
        for size in range(min(longest, len(data)), 0, -1):
            if any(form.startswith(data[-size:]) for form in self._forms):
                return size
        return 0


def _forms(key: str) -> set[bytes]:
    """Return the key as it is, as JSON writes it (twice: servers quote errors of other servers), and as URLs do."""
    once = json.dumps(key)[1:-1]
    twice = json.dumps(once)[1:-1]
    texts = {key, once, twice, quote(key, safe="")}
    return {form.encode("utf-8", "surrogatepass") for text in texts for form in (text, text.replace("/", "\\/"))}
