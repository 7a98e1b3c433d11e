"""Single values of a compose file: each reader takes the value with its place, and refuses with file and line."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from benchflow_sandbox_docker.compose.document import ComposeDocument

__all__ = ["ValueReader"]

At = tuple[Any, ...]
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(us|ms|s|m|h|d)")
_SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(?:i?b)?", re.IGNORECASE)
_MAX_ENV_FILE = 1024 * 1024


class ValueReader:
    """Reads values of one document whose paths are relative to `folder` and must stay inside `root`."""

    def __init__(self, document: ComposeDocument, folder: Path, root: Path) -> None:
        self.document = document
        self.folder = folder
        self.root = root.resolve()

    def mapping(self, value: Any, at: At) -> dict[str, Any]:
        if value is None:
            return {}
        if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
            self.document.refuse(at, f"'{at[-1]}' must be a mapping.")
        return value

    def items(self, value: Any, at: At) -> list[Any]:
        if value is None:
            return []
        if not isinstance(value, list):
            self.document.refuse(at, f"'{at[-1]}' must be a list.")
        return value

    def text(self, value: Any, at: At) -> str:
        if isinstance(value, bool) or not isinstance(value, (str, int, float)):
            self.document.refuse(at, f"'{at[-1]}' must be text.")
        return str(value)

    def texts(self, value: Any, at: At) -> tuple[str, ...]:
        """A list, or one text alone."""
        if isinstance(value, (str, int, float)):
            value = [value]
        return tuple(self.text(item, (*at, i)) for i, item in enumerate(self.items(value, at)))

    def flag(self, value: Any, at: At) -> bool:
        known = {
            "true": True,
            "yes": True,
            "on": True,
            "1": True,
            "false": False,
            "no": False,
            "off": False,
            "0": False,
        }
        found = value if isinstance(value, bool) else known.get(str(value).lower()) if value is not None else False
        if found is None:
            self.document.refuse(at, f"'{at[-1]}' must be true or false, not {value!r}.")
        return found

    def number(self, value: Any, at: At) -> float:
        try:
            found = float(self.text(value, at))
        except ValueError:
            self.document.refuse(at, f"'{at[-1]}' must be a number, not {value!r}.")
        if not 0 <= found < 1e15:
            self.document.refuse(at, f"'{at[-1]}' must not be negative or endless.")
        return found

    def duration(self, value: Any, at: At) -> float:
        text = self.text(value, at)
        parts = _DURATION.findall(text)
        if not parts or "".join(n + u for n, u in parts) != text:
            self.document.refuse(at, f"'{at[-1]}' must be a duration such as 10s or 1m30s, not {text!r}.")
        return sum(float(n) * _SECONDS[u] for n, u in parts)

    def size(self, value: Any, at: At) -> int:
        """Bytes."""
        match = _SIZE.fullmatch(self.text(value, at).strip())
        if match is None:
            self.document.refuse(at, f"'{at[-1]}' must be a size such as 512m, not {value!r}.")
        return int(float(match[1]) * 1024 ** " kmgt".index(match[2].lower() or " "))

    def argv(self, value: Any, at: At) -> tuple[str, ...] | None:
        """Text is split into words as a shell would, without running one."""
        if value is None:
            return None
        if isinstance(value, str):
            try:
                return tuple(shlex.split(value))
            except ValueError as error:
                self.document.refuse(at, f"'{at[-1]}' cannot be split into words: {error}.")
        return self.texts(value, at)

    def pairs(self, value: Any, at: At) -> dict[str, str | None]:
        """`a: b`, or a list of `a=b`. `None`: a name alone, which compose would fill from the host."""
        if isinstance(value, list):
            texts = self.texts(value, at)
            return {name: (rest if eq else None) for name, eq, rest in (text.partition("=") for text in texts)}
        found = self.mapping(value, at)
        return {key: None if item is None else self.scalar(item, (*at, key)) for key, item in found.items()}

    def scalar(self, value: Any, at: At) -> str:
        return str(value).lower() if isinstance(value, bool) else self.text(value, at)

    def environment(self, value: Any, at: At, known: Mapping[str, str]) -> dict[str, str]:
        """Variables; a name alone takes the task's own value, and is left out where there is none."""
        found: dict[str, str] = {}
        for name, given in self.pairs(value, at).items():
            if not name or "\0" in name or "=" in name:
                self.document.refuse(at, f"{name!r} is not a variable's name.")
            taken = known.get(name) if given is None else given
            if taken is not None:
                found[name] = taken
        return found

    def path(self, value: str, at: At, base: Path | None = None) -> Path:
        """A path that exists inside the task, links followed."""
        found = ((base or self.folder) / value).resolve()
        if value.startswith("~") or not (found == self.root or self.root in found.parents):
            self.document.refuse(at, f"'{value}' is outside the task.", "A compose file may only use the task's files.")
        if not found.exists():
            self.document.refuse(at, f"'{value}' does not exist.")
        if not (found.is_file() or found.is_dir()):
            self.document.refuse(at, f"'{value}' is neither a file nor a folder.")
        return found

    def inside(self, value: str, at: At) -> str:
        """An absolute path in the container, normalised."""
        path = PurePosixPath(value)
        if not path.is_absolute() or ".." in path.parts or "\0" in value or path == PurePosixPath("/"):
            self.document.refuse(at, f"'{value}' must be an absolute path in the container, without '..'.")
        return str(path)

    def env_files(self, value: Any, at: At) -> dict[str, str]:
        """Every variable of the files, in order. Values are taken as they are, quotes around them removed."""
        found: dict[str, str] = {}
        entries = value if isinstance(value, list) else [] if value is None else [value]
        for index, entry in enumerate(entries):
            place = (*at, index) if isinstance(value, list) else at
            wanted = self.mapping(entry, place) if isinstance(entry, dict) else {"path": entry}
            name = self.text(wanted.get("path"), place)
            if not self.flag(wanted.get("required", True), place) and not (self.folder / name).exists():
                continue
            file = self.path(name, place)
            if not file.is_file() or file.stat().st_size > _MAX_ENV_FILE:
                self.document.refuse(place, f"'{name}' is not a file of variables.")
            for line in file.read_text("utf-8", "replace").splitlines():
                key, eq, rest = line.strip().removeprefix("export ").partition("=")
                if eq and not key.startswith("#"):
                    rest = rest.strip()
                    found[key.strip()] = (
                        rest[1:-1] if len(rest) > 1 and rest[0] == rest[-1] and rest[0] in "'\"" else rest
                    )
        return found
