"""Secrets are taken out by value, wherever they appear, before anything is written."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

__all__ = ["MARK", "Cleaner", "Redactor", "secret_names"]

MARK = "[redacted]"
_SECRET_NAME = re.compile(r"KEY|SECRET|TOKEN|PASSWORD|PASSWD|CREDENTIAL|AUTH", re.IGNORECASE)
_SHORTEST = 6
"""Shorter values would redact ordinary words."""
_TOKENS: Final = re.compile(
    rb"\b(?:sk-[A-Za-z0-9_-]{20,}|gh[pousr]_[A-Za-z0-9]{30,}|AKIA[0-9A-Z]{16}|AIza[0-9A-Za-z_-]{35}|xox[abpr]-[A-Za-z0-9-]{20,}"
    rb"|eyJ[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,})"
)
"""What looks like a key of a known service, whoever it belongs to: a box may have printed one that we never saw."""


def secret_names(env: Mapping[str, str]) -> list[str]:
    """Variables that hold a secret, by their name."""
    return [name for name in env if _SECRET_NAME.search(name)]


class Redactor:
    """Knows the secret values of a run. Values may be added while it is in use."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        self._values: set[str] = set()
        self._compiled: re.Pattern[str] | None = None
        self._stale = False
        self._simple = True
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
    def _pattern(self) -> re.Pattern[str] | None:
        """Each value in the forms it takes on its way: as it is, inside JSON, inside a URL."""
        if self._stale:
            self._stale = False
            forms = {f for v in self._values for f in (v, json.dumps(v)[1:-1], quote(v, safe=""))}
            longest_first = sorted(forms, key=len, reverse=True)
            self._compiled = re.compile("|".join(map(re.escape, longest_first))) if forms else None
            self._simple = all(json.dumps(v, ensure_ascii=False)[1:-1] == v for v in self._values)
        return self._compiled

    def text(self, text: str) -> str:
        pattern = self._pattern
        return pattern.sub(MARK, text) if pattern else text

    def value(self, value: Any) -> Any:
        """JSON values, every text in them clean. Where there is nothing to hide, that costs one search."""
        pattern = self._pattern
        if pattern is None:
            return value
        if self._simple and pattern.search(json.dumps(value, ensure_ascii=False, default=str)) is None:
            return value
        return self._cleaned(value)

    def _cleaned(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {key: self._cleaned(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self._cleaned(item) for item in value]
        return value

    def data(self, data: bytes) -> bytes:
        """For files of unknown content: nothing but the secret changes."""
        if self._pattern is None:
            return data
        return self.text(data.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")

    def tree(self, root: Path) -> list[Path]:
        """Clean every file below `root` that came out of a box; returns those that changed."""
        changed: list[Path] = []
        if self._pattern is None or not root.is_dir():
            return changed
        for path in root.rglob("*"):
            if path.is_symlink() or not path.is_file():
                continue
            before = path.read_bytes()
            after = self.data(before)
            if after != before:
                path.write_bytes(after)
                changed.append(path)
        return changed


class Cleaner:
    """Secret values that this host knows, what looks like a key, and the user's home folder."""

    def __init__(self, redactor: Redactor, home: str | None) -> None:
        self._redactor = redactor
        at_home = home.rstrip("/").encode() if home and home.count("/") > 1 else None
        self._home = re.compile(re.escape(at_home) + rb"(?=[/\"'\s:]|$)") if at_home else None

    def __call__(self, data: bytes) -> bytes:
        data = _TOKENS.sub(MARK.encode(), self._redactor.data(data))
        return self._home.sub(b"~", data) if self._home else data
