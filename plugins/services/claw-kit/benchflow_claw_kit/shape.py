"""A task's own scenario file, checked before it is used: unknown keys are refused with a suggestion."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

__all__ = ["listed", "only", "when_ms"]


def only(value: Any, where: str, known: tuple[str, ...], required: tuple[str, ...] = ()) -> Mapping[str, Any]:
    """`value` as an object with these keys and no others."""
    if not isinstance(value, Mapping):
        raise ValueError(f"{where}: an object is wanted, not {type(value).__name__}")
    for name in value:
        if name not in known:
            near = get_close_matches(str(name), known, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(known)}"
            raise ValueError(f"{where}: unknown key {name!r}; {hint}")
    for name in required:
        if name not in value:
            raise ValueError(f"{where}: {name!r} is missing")
    return value


def listed(value: Any, where: str) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError(f"{where}: a list is wanted, not {type(value).__name__}")
    return value


def when_ms(text: Any, now_ms: int, where: str) -> int:
    """An ISO time, or one relative to the world's beginning: `-2d`, `+90m`, `-3h`."""
    import re

    from benchflow_claw_kit.seeding import parse_instant
    from benchflow_claw_kit.store import StoreError

    found = re.fullmatch(r"([+-])(\d{1,6})([smhdw])", str(text))
    if found:
        unit = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}[found.group(3)]
        return now_ms + int(found.group(1) + "1") * int(found.group(2)) * unit * 1000
    try:
        return parse_instant(str(text))
    except StoreError as error:
        raise ValueError(f"{where}: {error}, or like -2d") from None
