"""What a build context holds: `.dockerignore`, and the sources of COPY, which never lie outside it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchflow_core.errors import TaskError

__all__ = ["Context"]


@dataclass(frozen=True, slots=True)
class _Rule:
    pattern: re.Pattern[str]
    keep: bool


@dataclass(frozen=True, slots=True)
class Context:
    root: Path
    rules: tuple[_Rule, ...] = ()

    @classmethod
    def of(cls, root: Path, dockerfile: Path | None = None) -> Context:
        """Reads `<Dockerfile>.dockerignore`, or else `.dockerignore`."""
        candidates = [root / ".dockerignore"]
        if dockerfile is not None:
            candidates.insert(0, dockerfile.with_name(f"{dockerfile.name}.dockerignore"))
        for path in candidates:
            if path.is_file():
                return cls(root, tuple(_rules(path.read_text(errors="replace"))))
        return cls(root)

    def ignored(self, relative: str) -> bool:
        """A path is out when the last rule that matches it, or a folder above it, says so."""
        parts = relative.split("/")
        above = ["/".join(parts[: n + 1]) for n in range(len(parts))]
        out = False
        for rule in self.rules:
            if any(rule.pattern.fullmatch(path) for path in above):
                out = not rule.keep
        return out

    def skip(self, relative: str, is_dir: bool) -> bool:
        """For walking: a folder is entered where an exception below it is possible."""
        return self.ignored(relative) and not (is_dir and any(rule.keep for rule in self.rules))

    def find(self, pattern: str, where: str) -> list[str]:
        """Paths, relative to the context, that a source of COPY names. Raises `TaskError` at `where`."""
        wanted = os.path.normpath(pattern.lstrip("/") or ".")
        if wanted == ".." or wanted.startswith("../"):
            raise TaskError(
                f"{where}: {pattern!r} lies outside the build context.", remedy="Copy from inside the context."
            )
        if wanted == ".":
            return ["."]
        found = [path for path in sorted(self._match("", wanted.split("/"))) if not self.ignored(path)]
        if not found:
            raise TaskError(
                f"{where}: {pattern!r} matches nothing in the build context.",
                remedy="Check the name, and .dockerignore.",
            )
        return [self._resolve(path, where) for path in found]

    def _match(self, folder: str, parts: list[str]) -> Iterator[str]:
        here, rest = parts[0], parts[1:]
        matches = _component(here)
        try:
            names = sorted(os.listdir(self.root / folder))
        except OSError:
            return
        for name in names:
            if matches.fullmatch(name):
                path = f"{folder}/{name}" if folder else name
                if rest:
                    yield from self._match(path, rest)
                else:
                    yield path

    def _resolve(self, relative: str, where: str) -> str:
        """A link as the source is followed, as long as it stays inside."""
        root = os.path.realpath(self.root)
        real = os.path.realpath(self.root / relative)
        if real != root and not real.startswith(f"{root}/"):
            raise TaskError(
                f"{where}: {relative!r} is a link out of the build context.", remedy="Copy the file itself."
            )
        if not os.path.exists(real):
            raise TaskError(
                f"{where}: {relative!r} is a link to nothing.", remedy="Remove the link, or add its target."
            )
        return os.path.relpath(real, root)


def _rules(text: str) -> Iterator[_Rule]:
    for line in text.splitlines():
        row = line.strip()
        if not row or row.startswith("#"):
            continue
        keep = row.startswith("!")
        pattern = os.path.normpath(row.removeprefix("!").strip()).lstrip("/")
        if pattern not in (".", ""):
            yield _Rule(re.compile(_translate(pattern)), keep)


def _translate(pattern: str) -> str:
    parts = pattern.split("/")
    texts = []
    for number, part in enumerate(parts):
        last = number == len(parts) - 1
        if part == "**":
            texts.append(".*" if last else "(?:.*/)?")
        else:
            texts.append(_glob(part) + ("" if last else "/"))
    return "".join(texts)


def _component(pattern: str) -> re.Pattern[str]:
    return re.compile(_glob(pattern), re.DOTALL)


def _glob(pattern: str) -> str:
    """One component: `*`, `?`, `[a-z]`, backslash."""
    texts, at = [], 0
    while at < len(pattern):
        char = pattern[at]
        at += 1
        if char == "*":
            texts.append("[^/]*")
        elif char == "?":
            texts.append("[^/]")
        elif char == "[" and "]" in pattern[at + 1 :]:
            end = pattern.index("]", at + 1)
            inner = pattern[at:end].replace("\\", "\\\\")
            texts.append(f"[{'^' + inner[1:] if inner[0] in '!^' else inner}]")
            at = end + 1
        elif char == "\\" and at < len(pattern):
            texts.append(re.escape(pattern[at]))
            at += 1
        else:
            texts.append(re.escape(char))
    return "".join(texts)
