"""The sources of COPY, which never lie outside the build context."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from benchflow_boxkit import context as contexts

from benchflow_core.errors import TaskError

__all__ = ["Context"]


class Context(contexts.Context):
    def skip(self, relative: str, is_dir: bool) -> bool:
        """For walking: a folder is entered where an exception below it is possible."""
        return self.ignored(relative) and not (is_dir and any(keep for _, keep in self.rules))

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
        matches = re.compile(contexts.glob(here), re.DOTALL)
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
