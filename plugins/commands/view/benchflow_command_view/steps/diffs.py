"""Two versions of a file as lines that stayed, went and came; bounded in time whatever they hold."""

from __future__ import annotations

from difflib import SequenceMatcher

__all__ = ["line_diff"]

Line = tuple[str, str]
_CONTEXT = 3
_COMPARED = 400
"""Lines on each side beyond which a change is shown as a whole: comparing costs their product."""


def line_diff(old: str, new: str, most: int) -> tuple[list[Line], int]:
    """Lines with ` `, `-`, `+` or `…` before them, and how many characters of further ones were left out."""
    left, right = old.splitlines(), new.splitlines()
    head = _common(left, right)
    tail = _common(left[head:][::-1], right[head:][::-1])
    middle = _middle(left[head : len(left) - tail], right[head : len(right) - tail])
    before, after = left[max(0, head - _CONTEXT) : head], left[len(left) - tail :][:_CONTEXT]
    lines: list[Line] = [("…", f"{head - len(before)} lines")] if head > len(before) else []
    lines += [(" ", line) for line in before]
    lines += middle
    lines += [(" ", line) for line in after]
    if tail > len(after):
        lines.append(("…", f"{tail - len(after)} lines"))
    return lines[:most], sum(len(text) + 1 for _, text in lines[most:])


def _common(left: list[str], right: list[str]) -> int:
    count = 0
    for a, b in zip(left, right, strict=False):
        if a != b:
            break
        count += 1
    return count


def _middle(left: list[str], right: list[str]) -> list[Line]:
    if len(left) > _COMPARED or len(right) > _COMPARED:
        return [*(("-", line) for line in left), *(("+", line) for line in right)]
    lines: list[Line] = []
    for op, a, b, c, d in SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        if op == "equal":
            lines += [(" ", line) for line in left[a:b]]
        else:
            lines += [("-", line) for line in left[a:b]]
            lines += [("+", line) for line in right[c:d]]
    return lines
