"""A build context: what `.dockerignore` leaves of it, and its digest."""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Self

from benchflow_core.contracts.quick import dataclass
from benchflow_core.contracts.sandboxes import ImageRequest
from benchflow_core.errors import TaskError

__all__ = ["Context", "glob", "key", "not_plain"]


@dataclass(frozen=True, slots=True)
class Context:
    root: Path
    rules: tuple[tuple[re.Pattern[str], bool], ...] = ()
    """Pattern, and whether it keeps what it matches."""

    @classmethod
    def of(cls, root: Path, dockerfile: Path | None = None) -> Self:
        """Reads `<Dockerfile>.dockerignore`, or else `.dockerignore`."""
        own = [dockerfile.with_name(f"{dockerfile.name}.dockerignore")] if dockerfile else []
        for path in (*own, root / ".dockerignore"):
            if path.is_file():
                return cls(root, tuple(_rules(path.read_text(errors="replace"))))
        return cls(root)

    def ignored(self, relative: str) -> bool:
        """A path is out when the last rule that matches it, or a folder above it, says so."""
        parts = relative.split("/")
        above = ["/".join(parts[: n + 1]) for n in range(len(parts))]
        out = False
        for pattern, keep in self.rules:
            if any(pattern.fullmatch(path) for path in above):
                out = not keep
        return out

    def entries(self) -> Iterator[tuple[str, Path, os.stat_result]]:
        """Everything that goes along, folders before what is in them. Links are not followed."""
        pending = [""]
        keeps = any(keep for _, keep in self.rules)
        while pending:
            folder = pending.pop()
            for name in sorted(entry.name for entry in (self.root / folder).iterdir()):
                relative = f"{folder}/{name}" if folder else name
                path = self.root / relative
                info = path.lstat()
                is_dir = stat.S_ISDIR(info.st_mode)
                out = self.ignored(relative)
                if is_dir and (not out or keeps):
                    pending.append(relative)
                if not out and (is_dir or stat.S_ISREG(info.st_mode) or stat.S_ISLNK(info.st_mode)):
                    yield relative, path, info


def not_plain(context: Context | None) -> str:
    """Links and empty folders, which an SDK that uploads plain files loses: a few names for a notice, or nothing."""
    entries = [(relative, info.st_mode) for relative, _, info in context.entries()] if context else []
    above = {str(Path(relative).parent) for relative, _ in entries}
    lost = sorted(name for name, mode in entries if stat.S_ISLNK(mode) or (stat.S_ISDIR(mode) and name not in above))
    return ", ".join(lost[:5]) + (" …" if len(lost) > 5 else "")


def _rules(text: str) -> Iterator[tuple[re.Pattern[str], bool]]:
    for line in text.splitlines():
        row = line.strip()
        if row and not row.startswith("#"):
            keep = row.startswith("!")
            pattern = os.path.normpath(row.removeprefix("!").strip()).lstrip("/")
            if pattern not in (".", ""):
                yield re.compile(_translate(pattern), re.DOTALL), keep


def _translate(pattern: str) -> str:
    parts = pattern.split("/")
    texts = []
    for number, part in enumerate(parts):
        last = number == len(parts) - 1
        if part == "**":
            texts.append(".*" if last else "(?:.*/)?")
        else:
            texts.append(glob(part) + ("" if last else "/"))
    return "".join(texts)


def glob(part: str) -> str:
    """One component: `*`, `?`, `[a-z]`, backslash."""
    found = re.findall(r"\\.|\[[!^]?\]?[^\]]*\]|.", part, re.DOTALL)
    texts = {"*": "[^/]*", "?": "[^/]"}
    return "".join(texts.get(word) or _word(word) for word in found)


def _word(word: str) -> str:
    if word.startswith("[") and len(word) > 2:
        inner = word[1:-1].replace("\\", "\\\\")
        return f"[^{inner[1:]}]" if inner[0] in "!^" else f"[{inner}]"
    return re.escape(word[1:] if word.startswith("\\") and len(word) == 2 else word)


def key(context: Context, dockerfile: str, request: ImageRequest) -> str:
    """Equal for equal content, names and modes: times and owners of the host do not count."""
    asked = json.dumps([dockerfile, sorted(request.build_args.items()), request.platform or "", request.target or ""])
    found = hashlib.sha256(asked.encode())
    try:
        for relative, path, info in sorted(context.entries()):
            found.update(f"{relative}\0{stat.S_IFMT(info.st_mode)}\0{info.st_mode & 0o111}\0".encode(errors="replace"))
            if stat.S_ISLNK(info.st_mode):
                found.update(os.fsencode(path.readlink()))
            elif stat.S_ISREG(info.st_mode):
                found.update(hashlib.sha256(path.read_bytes()).digest())
    except OSError as error:
        raise TaskError(f"{context.root}: the build context cannot be read: {error}.") from error
    return found.hexdigest()[:32]
