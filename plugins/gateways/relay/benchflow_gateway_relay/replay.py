"""Answers from a recording: found by what a request says, not by when it comes."""

from __future__ import annotations

import json
import re
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping
from dataclasses import fields
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

from benchflow_core.contracts import Usage, Wire
from benchflow_core.contracts.quick import dataclass
from benchflow_core.errors import ConfigurationError

__all__ = ["RecordedAnswer", "Replay", "first_difference"]

_ASIDE = frozenset(
    {"metadata", "client_metadata", "user", "safety_identifier", "prompt_cache_key", "session_id", "stream_options"}
)
"""Fields that say who asks, not what."""
_VOLATILE = tuple(
    re.compile(pattern)
    for pattern in (
        r"\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b",  # uuids
        r"\b\d{4}-\d\d-\d\d(?:[T _]+\d\d[:-]\d\d(?:[:-]\d\d(?:[.,]\d+)?)?(?: ?(?:Z|UTC|[+-]\d\d:?\d\d))?)?",
        r"\b(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? +)?(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*\.?"
        r" +\d{1,2}(?:,? +\d{4})?",
        r"\b\d{1,2}/\d{1,2}/\d{4}\b",
        r"\b\d{1,2}:\d\d(?::\d\d(?:\.\d+)?)?(?: ?[AP]M)?\b",
        r"\b\d+(?:\.\d+)? ?(?:ns|µs|us|ms|s|sec|secs|seconds)\b",
        r"(?:127\.0\.0\.1|localhost):\d+",
        r"/tmp/[\w.+-]+",
        r"\b[0-9a-f]{12,}\b",
        r"(?<=[-_.])(?=[A-Za-z0-9]*[0-9A-Z])(?=[A-Za-z0-9]*[a-z])[A-Za-z0-9]{6}\b",  # what mkdtemp puts behind a name
        r"\b(?=[\w-]{0,99}\d)(?=[\w-]{0,99}[a-zA-Z])[\w-]{24,}\b",  # ids of sessions, calls and keys
        r"\b\d{9,}\b",  # seconds since 1970, pids of the larger kind, sizes
    )
)


@dataclass(frozen=True, slots=True)
class RecordedAnswer:
    """A recorded answer, and how it was found."""

    status: int
    content_type: str
    answer: bytes
    cut: bool
    usage: Usage | None
    """As it was counted then; `None`: read it from the answer."""
    match: Literal["exact", "like"]


class Replay:
    """The recorded exchanges of one key. Each is served once: a request made twice was answered twice.

    Only digests and places are kept: the requests of a long rollout together are larger than a process should be.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._places: dict[int, int] = {}
        self._exact: dict[str, deque[int]] = defaultdict(deque)
        self._like: dict[str, deque[int]] = defaultdict(deque)
        for number, (place, line) in enumerate(_read(path), 1):
            self._places[number] = place
            self._exact[_digest(line["wire"], _plain(line["request"]))].append(number)
            self._like[_digest(line["wire"], _blurred(_plain(line["request"])))].append(number)
        self._left = set(self._places)

    def find(self, wire: Wire | None, body: Mapping[str, Any]) -> tuple[RecordedAnswer | None, str | None]:
        """The answer to a request, or where it leaves the recording, in words."""
        plain = _plain(body)
        number = self._take(self._exact.get(_digest(wire, plain)))
        if number is not None:
            return _found(self._line(number), "exact"), None
        number = self._take(self._like.get(_digest(wire, _blurred(plain))))
        if number is not None:
            return _found(self._line(number), "like"), None
        if not self._left:
            return None, "the recording has ended"
        nearest = min(self._left)
        where = first_difference(_blurred(_plain(self._line(nearest)["request"])), _blurred(plain))
        return None, f"the request differs from number {nearest} of the recording at {where}"

    def _line(self, number: int) -> Mapping[str, Any]:
        with self._path.open("rb") as file:
            file.seek(self._places[number])
            value: Mapping[str, Any] = json.loads(file.readline())
            return value

    def _take(self, numbers: deque[int] | None) -> int | None:
        while numbers:
            number = numbers.popleft()
            if number in self._left:
                self._left.discard(number)
                return number
        return None


def first_difference(recorded: Any, asked: Any, path: str = "") -> str:
    """The first place where two bodies differ, and what stands there."""
    if isinstance(recorded, Mapping) and isinstance(asked, Mapping):
        for key in [*recorded, *(k for k in asked if k not in recorded)]:
            if recorded.get(key) != asked.get(key):
                return first_difference(recorded.get(key), asked.get(key), f"{path}.{key}" if path else str(key))
    if isinstance(recorded, list) and isinstance(asked, list):
        for number, (one, other) in enumerate(zip(recorded, asked, strict=False)):
            if one != other:
                return first_difference(one, other, f"{path}[{number}]")
        return f"{path}: {len(recorded)} entries then, {len(asked)} now"
    if isinstance(recorded, str) and isinstance(asked, str):
        start = next((n for n, (a, b) in enumerate(zip(recorded, asked, strict=False)) if a != b), 0)
        recorded, asked = recorded[max(start - 20, 0) :], asked[max(start - 20, 0) :]
    return f"{path or 'the top'}: {_short(recorded)} then, {_short(asked)} now"


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 60 else f"{text[:57]}…"


def _read(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Each exchange with its place in the file."""
    try:
        with path.open("rb") as file:
            place = 0
            for number, line in enumerate(file, 1):
                yield place, _checked(line, f"{path}:{number}")
                place += len(line)
    except OSError as error:
        raise ConfigurationError(f"the recording {path} cannot be read: {error.strerror}.") from error


def _checked(line: bytes, where: str) -> Mapping[str, Any]:
    try:
        value: Mapping[str, Any] = json.loads(line)
        good = isinstance(value["request"], dict) and isinstance(value["answer"], str | None)
        good = good and isinstance(value["status"], int) and isinstance(value["wire"], str)
    except (ValueError, KeyError, TypeError):
        good = False
    if not good:
        raise ConfigurationError(f"{where} is not a recorded exchange.", remedy="Record it again.")
    return value


def _found(line: Mapping[str, Any], match: Literal["exact", "like"]) -> RecordedAnswer:
    cut = line.get("error_type") in ("stream_cut", "client_gone", "revoked")
    return RecordedAnswer(
        status=line["status"] if line["status"] != 499 else 200,
        content_type=str(line.get("content_type") or "application/json"),
        answer=(line["answer"] or "").encode(),
        cut=cut,
        usage=_usage(line.get("usage")),
        match=match,
    )


def _usage(value: Any) -> Usage | None:
    known = {f.name for f in fields(Usage)}
    return Usage(**{k: v for k, v in value.items() if k in known}) if isinstance(value, dict) else None


def _plain(body: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in body.items() if key not in _ASIDE}


def _blurred(value: Any) -> Any:
    """Without what changes from run to run although nothing else does: times, ids, ports, temporary names."""
    if isinstance(value, str):
        for pattern in _VOLATILE:
            value = pattern.sub("~", value)
        return value
    if isinstance(value, Mapping):
        return {key: _blurred(item) for key, item in value.items()}
    return [_blurred(item) for item in value] if isinstance(value, list) else value


def _digest(wire: str | None, body: Mapping[str, Any]) -> str:
    return sha256(json.dumps([wire, body], sort_keys=True, ensure_ascii=True).encode()).hexdigest()
