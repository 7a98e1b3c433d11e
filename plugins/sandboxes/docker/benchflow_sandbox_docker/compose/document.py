"""A compose file with the line of everything in it, and `${VAR}` put in as compose does."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from benchflow_core.contracts.bounded_yaml import MAX_BYTES, lines_of, load_yaml
from benchflow_core.errors import TaskError

__all__ = ["ComposeDocument"]

_VARIABLE = re.compile(
    r"\$(?:(?P<escaped>\$)|(?P<plain>[A-Za-z_]\w*)|\{(?P<name>[A-Za-z_]\w*)(?:(?P<op>:?[-?+])(?P<word>[^{}]*))?\}|(?P<bad>\{))"
)


class ComposeDocument:
    """What the file says. Nothing in it is trusted: safe-loaded, bounded, and no host variable is ever read."""

    def __init__(self, text: str, name: str) -> None:
        self.name = name
        self.text = text
        self.data, node = load_yaml(text, name, TaskError)
        self.lines = lines_of(node)
        if not isinstance(self.data, dict):
            raise TaskError(f"{name}: expected a mapping with 'services'.")

    @classmethod
    def read(cls, path: Path) -> ComposeDocument:
        try:
            with path.open("rb") as file:
                return cls(file.read(MAX_BYTES + 1).decode("utf-8"), path.name)
        except (OSError, UnicodeDecodeError) as error:
            raise TaskError(f"{path.name} cannot be read: {getattr(error, 'strerror', None) or error}.") from error

    def refuse(self, at: tuple[Any, ...], message: str, remedy: str | None = None) -> NoReturn:
        raise TaskError(f"{self.where(at)}: {message}", remedy=remedy)

    def where(self, at: tuple[Any, ...]) -> str:
        """File and line of the nearest thing on the way to `at` that has one."""
        while at and at not in self.lines:
            at = at[:-1]
        return f"{self.name}:{self.lines.get(at, 1)}"

    def interpolated(self, variables: Mapping[str, str], *, lenient: bool = False) -> dict[str, Any]:
        """The data with variables put in. `lenient`: one that is not known yet counts as empty."""

        def walk(value: Any, at: tuple[Any, ...]) -> Any:
            if isinstance(value, dict):
                return {key: walk(item, (*at, key)) for key, item in value.items()}
            if isinstance(value, list):
                return [walk(item, (*at, index)) for index, item in enumerate(value)]
            return self._fill(value, variables, at, lenient) if isinstance(value, str) and "$" in value else value

        found: dict[str, Any] = walk(self.data, ())
        return found

    def _fill(self, text: str, variables: Mapping[str, str], at: tuple[Any, ...], lenient: bool) -> str:
        def one(match: re.Match[str]) -> str:
            if match["escaped"]:
                return "$"
            if match["bad"]:
                self.refuse(at, f"'{text}' has a '${{' that is not understood.")
            name, op, word = match["plain"] or match["name"], match["op"] or "", match["word"] or ""
            value = variables.get(name)
            given = bool(value) if op.startswith(":") else value is not None
            if op.endswith("+"):
                return word if given else ""
            if given:
                return value or ""
            if op.endswith("-"):
                return self._fill(word, variables, at, lenient)
            if lenient:
                return ""
            self.refuse(
                at,
                f"${name} is not set{': ' + word if op.endswith('?') and word else ''}.",
                "A compose file sees the task's own environment.env, not the host's; or write ${"
                + name
                + ":-default}.",
            )

        return _VARIABLE.sub(one, text)
