"""A build context: what `.dockerignore` leaves of it, its digest, and the archive the engine gets."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import re
import stat
import tarfile
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchflow_core.contracts.sandboxes import ImageRequest
from benchflow_core.errors import TaskError

__all__ = ["Context", "key", "name_of", "stream"]

_OUTSIDE: Final = ".benchflow.Dockerfile"
_CHUNK: Final = 1 << 19


@dataclass(frozen=True, slots=True)
class Context:
    root: Path
    rules: tuple[tuple[re.Pattern[str], bool], ...] = ()
    """Pattern, and whether it keeps what it matches."""

    @classmethod
    def of(cls, root: Path, dockerfile: Path | None = None) -> Context:
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
            texts.append(_glob(part) + ("" if last else "/"))
    return "".join(texts)


def _glob(part: str) -> str:
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


def name_of(context: Context, dockerfile: Path) -> str:
    """What the Dockerfile is called in the archive: as in the context, or by a name of ours if it lies outside."""
    with contextlib.suppress(ValueError, OSError):
        return str(dockerfile.resolve().relative_to(context.root.resolve()))
    return _OUTSIDE


async def stream(context: Context, name: str, dockerfile: str) -> AsyncIterator[bytes]:
    """The archive, owned by root, in pieces; the Dockerfile in it is the given text."""
    parts = _archive(context, name, dockerfile)
    while piece := await asyncio.to_thread(_next, parts):
        yield piece


def _next(parts: Iterator[bytes]) -> bytes:
    found, size = [], 0
    for part in parts:
        found.append(part)
        size += len(part)
        if size >= _CHUNK:
            break
    return b"".join(found)


def _archive(context: Context, name: str, dockerfile: str) -> Iterator[bytes]:
    text = dockerfile.encode()
    yield _member(name, 0o644, len(text)) + text + _padding(len(text))
    for relative, path, info in context.entries():
        if relative == name:
            continue
        mode = stat.S_IMODE(info.st_mode)
        if stat.S_ISDIR(info.st_mode):
            yield _member(relative, mode, 0, tarfile.DIRTYPE)
        elif stat.S_ISLNK(info.st_mode):
            yield _member(relative, 0o777, 0, tarfile.SYMTYPE, str(path.readlink()))
        else:
            data = path.read_bytes()
            yield _member(relative, mode, len(data)) + data + _padding(len(data))
    yield bytes(2 * tarfile.BLOCKSIZE)


def _member(name: str, mode: int, size: int, kind: bytes = tarfile.REGTYPE, target: str = "") -> bytes:
    info = tarfile.TarInfo(name)
    info.mode, info.size, info.type, info.linkname = mode, size, kind, target
    return info.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape")


def _padding(size: int) -> bytes:
    return bytes(-size % tarfile.BLOCKSIZE)
