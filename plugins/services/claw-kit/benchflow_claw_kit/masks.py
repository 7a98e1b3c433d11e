"""Partial responses: the `fields=` grammar (`a,b(c,d/e),f/*`), parsed once and applied to a JSON value."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

__all__ = ["BadMask", "apply_mask", "parse_mask"]

Mask = dict[str, Any]
"""Name to the mask below it; an empty mask means everything below."""


class BadMask(ValueError):
    """`fields=` cannot be read; the text says where."""


@lru_cache(maxsize=256)
def parse_mask(text: str) -> Mask:
    mask, end = _group(text, 0, closing=False, depth=0)
    if end != len(text):
        raise BadMask(f"Invalid field selection {text}")
    return mask


def _group(text: str, at: int, closing: bool, depth: int) -> tuple[Mask, int]:
    if depth > 30:
        raise BadMask("Invalid field selection: nested too deeply")
    mask: Mask = {}
    while True:
        at = _path(text, at, mask, depth)
        if at < len(text) and text[at] == ",":
            at += 1
            continue
        if closing:
            if at >= len(text) or text[at] != ")":
                raise BadMask(f"Invalid field selection {text}")
            at += 1
        return mask, at


def _path(text: str, at: int, mask: Mask, depth: int) -> int:
    below = mask
    while True:
        start = at
        while at < len(text) and text[at] not in ",/()":
            at += 1
        name = text[start:at].strip()
        if not name:
            raise BadMask(f"Invalid field selection {text}")
        nxt = text[at : at + 1]
        if nxt == "/":
            child = below.setdefault(name, {})
            below, at = child, at + 1
            continue
        if nxt == "(":
            inner, at = _group(text, at + 1, closing=True, depth=depth + 1)
            _merge(below.setdefault(name, {}), inner)
            return at
        below[name] = {}
        return at


def _merge(into: Mask, other: Mask) -> None:
    for name, below in other.items():
        _merge(into.setdefault(name, {}), below)


def apply_mask(value: Any, mask: Mask) -> Any:
    if not mask:
        return value
    if isinstance(value, list):
        return [apply_mask(item, mask) for item in value]
    if not isinstance(value, dict):
        return value
    if "*" in mask:
        every: Mask = mask["*"]
        return {name: apply_mask(item, mask.get(name, every)) for name, item in value.items()}
    return {name: apply_mask(item, mask[name]) for name, item in value.items() if name in mask}
