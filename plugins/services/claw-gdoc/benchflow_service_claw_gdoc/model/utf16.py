"""Docs counts text in UTF-16 code units: a character outside the basic plane is two."""

from __future__ import annotations

import re

__all__ = ["clean", "split", "width"]

_DROPPED = re.compile("[\x00-\x08\x0b-\x1f\ue000-\uf8ff\ud800-\udfff]")


def width(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def split(text: str, at: int) -> tuple[str, str]:
    """Text before and from the code unit `at`. ValueError inside a surrogate pair."""
    if text.isascii():
        return text[:at], text[at:]
    raw = text.encode("utf-16-le", "surrogatepass")
    try:
        return raw[: 2 * at].decode("utf-16-le"), raw[2 * at :].decode("utf-16-le")
    except UnicodeDecodeError:
        raise ValueError("inside a surrogate pair") from None


def clean(text: str) -> str:
    """What Docs keeps of inserted text: no control characters but tab and newline, nothing of the private area."""
    return _DROPPED.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))
