"""Secrets are taken out by value, wherever they appear, before anything is written."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from urllib.parse import quote

__all__ = ["MARK", "Redactor", "secret_names"]

MARK = "[redacted]"
_SECRET_NAME = re.compile(r"KEY|SECRET|TOKEN|PASSWORD|PASSWD|CREDENTIAL|AUTH", re.IGNORECASE)
_SHORTEST = 6
"""Shorter values would redact ordinary words."""


def secret_names(env: Mapping[str, str]) -> list[str]:
    """Variables that hold a secret, by their name."""
    return [name for name in env if _SECRET_NAME.search(name)]


class Redactor:
    """Knows the secret values of a run. Values may be added while it is in use."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        self._forms: set[str] = set()
        self._pattern: re.Pattern[str] | None = None
        self.add(values)

    @classmethod
    def from_env(cls, *envs: Mapping[str, str]) -> Redactor:
        return cls(env[name] for env in envs for name in secret_names(env))

    def add(self, values: Iterable[str]) -> None:
        """Each value in the forms it takes on its way: as it is, inside JSON, inside a URL."""
        before = len(self._forms)
        for value in values:
            if len(value) >= _SHORTEST:
                self._forms |= {value, json.dumps(value)[1:-1], quote(value, safe="")}
        if len(self._forms) != before:
            longest_first = sorted(self._forms, key=len, reverse=True)
            self._pattern = re.compile("|".join(map(re.escape, longest_first)))

    def text(self, text: str) -> str:
        return self._pattern.sub(MARK, text) if self._pattern else text

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
