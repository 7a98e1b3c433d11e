"""Secrets are taken out by value, wherever they appear, before anything is written."""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, quote_plus

from benchflow_core.contracts.settings import secret_names

__all__ = ["HEAD", "MARK", "Cleaner", "Redactor", "secret_names"]

MARK = "[redacted]"
_SHORTEST = 6
"""Shorter values would redact ordinary words."""
_SHORTEST_CODED: Final = 8
HEAD: Final = 4
_URL_SAFE: Final = str.maketrans("+/", "-_")
_TOKENS: Final = re.compile(
    rb"\b(?:sk-[A-Za-z0-9_-]{20,}|gh[pousr]_[A-Za-z0-9]{30,}|AKIA[0-9A-Z]{16}|AIza[0-9A-Za-z_-]{35}|xox[abpr]-[A-Za-z0-9-]{20,}"
    rb"|eyJ[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,})"
)
"""What looks like a key of a known service, whoever it belongs to: a box may have printed one that we never saw."""


class Redactor:
    """Knows the secret values of a run. Values may be added while it is in use."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        self._values: set[str] = set()
        self._compiled: re.Pattern[str] | None = None
        self._heads: dict[str, list[str]] = {}
        self._bytes: tuple[bytes, ...] = ()
        self.longest = 0
        self._stale = False
        self.add(values)

    @classmethod
    def from_env(cls, *envs: Mapping[str, str]) -> Redactor:
        return cls(env[name] for env in envs for name in secret_names(env))

    def add(self, values: Iterable[str]) -> None:
        before = len(self._values)
        self._values |= {value for value in values if len(value) >= _SHORTEST}
        self._stale = self._stale or len(self._values) != before

    def forget(self, values: Iterable[str]) -> None:
        """Secrets that are void: a job of many rollouts must not look for all keys it ever gave out."""
        before = len(self._values)
        self._values -= set(values)
        self._stale = self._stale or len(self._values) != before

    @property
    def heads(self) -> Mapping[str, list[str]]:
        """Each value in every form it takes on its way, by the first characters: few have to be looked for."""
        if self._stale:
            self._stale = False
            forms = sorted({form for value in self._values for form in _forms(value)}, key=len, reverse=True)
            self._heads, self.longest = {}, max(map(len, forms), default=0)
            for form in forms:
                self._heads.setdefault(form[:HEAD], []).append(form)
            self._bytes = tuple(head.encode("utf-8", "surrogatepass") for head in self._heads)
            self._compiled = re.compile("|".join(map(re.escape, forms))) if forms else None
        return self._heads

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Where secrets stand in a text."""
        for head in self.heads:
            if head in text and self._compiled is not None:
                return [found.span() for found in self._compiled.finditer(text)]
        return []

    def text(self, text: str) -> str:
        for head in self.heads:
            if head in text and self._compiled is not None:
                return self._compiled.sub(MARK, text)
        return text

    def json_text(self, text: str, encode: Callable[[Any], str]) -> str:
        """JSON that is JSON afterwards, too: a number that looks like a secret stays a number."""
        return text if self.text(text) == text else encode(self.value(json.loads(text)))

    def value(self, value: Any) -> Any:
        """JSON values, every text in them clean."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {self.text(key) if isinstance(key, str) else key: self.value(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(item) for item in value]
        return value

    def data(self, data: bytes) -> bytes:
        """For files of unknown content: nothing but the secret changes."""
        if not self.heads or not any(head in data for head in self._bytes):
            return data
        return self.text(data.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")

    def tree(self, root: Path) -> list[Path]:
        """Clean every file below `root` that came out of a box, its name too; returns those whose content changed."""
        changed: list[Path] = []
        if not self.heads or not root.is_dir():
            return changed
        for path in sorted(root.rglob("*"), reverse=True):  # what is in a folder before the folder
            place = self._renamed(path)
            if place.is_symlink() or not place.is_file():
                continue
            before = place.read_bytes()
            after = self.data(before)
            if after != before:
                place.write_bytes(after)
                changed.append(place)
        return changed

    def _renamed(self, path: Path) -> Path:
        name = self.text(path.name)
        if name == path.name:
            return path
        place, number = path.with_name(name), 1
        while os.path.lexists(place):
            place, number = path.with_name(f"{name}-{number}"), number + 1
        return path.rename(place)


def _forms(value: str) -> Iterator[str]:
    """As it is, inside JSON and JSON in JSON, inside a URL, as hexadecimal digits, and inside base64."""
    quoted = {json.dumps(value, ensure_ascii=plain)[1:-1] for plain in (True, False)}
    yield from (value, *quoted, *(json.dumps(text)[1:-1] for text in quoted), quote(value, safe=""), quote_plus(value))
    raw = value.encode("utf-8", "surrogatepass")
    yield from (raw.hex(), raw.hex().upper())
    for before in range(3):  # the same bytes look different after one or two others
        start, end = (0, 2, 3)[before], (len(raw) + before) * 8 // 6
        core = base64.b64encode(bytes(before) + raw).decode()[start:end]
        if len(core) >= _SHORTEST_CODED:
            yield from (core, core.translate(_URL_SAFE))


class Cleaner:
    """Secret values that this host knows, what looks like a key, and the user's home folder."""

    def __init__(self, redactor: Redactor, home: str | None) -> None:
        self._redactor = redactor
        at_home = home.rstrip("/").encode() if home and home.count("/") > 1 else None
        self._home = re.compile(re.escape(at_home) + rb"(?=[/\"'\s:]|$)") if at_home else None

    def __call__(self, data: bytes) -> bytes:
        data = _TOKENS.sub(MARK.encode(), self._redactor.data(data))
        return self._home.sub(b"~", data) if self._home else data
