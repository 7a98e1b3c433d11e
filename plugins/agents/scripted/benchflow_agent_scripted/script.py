"""Reads a script: YAML in, checked data out. Every mistake is one line with file, line and a suggestion."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from benchflow_agent_scripted.shapes import SCRIPT, STEPS, TURN, ValueRule
from benchflow_agent_scripted.yamltree import Tree, read_yaml
from benchflow_core.errors import ConfigurationError

__all__ = ["chosen_script", "load_script"]


def chosen_script(options: Mapping[str, str], env: Mapping[str, str]) -> dict[str, Any]:
    """`--agent-option script=…`, else BENCHFLOW_SCRIPT. A path, or the YAML itself."""
    given = options.get("script") or env.get("BENCHFLOW_SCRIPT") or os.environ.get("BENCHFLOW_SCRIPT")
    if not given:
        raise ConfigurationError("no script was given.", remedy="Pass --agent-option script=FILE.yaml.")
    if _is_inline(given):
        return load_script(given, "script")
    path = Path(given).expanduser()
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise ConfigurationError(
            f"cannot read the script {given}: {reason}.", remedy="Pass --agent-option script=FILE.yaml."
        ) from None
    return load_script(text, given)


def _is_inline(text: str) -> bool:
    return "\n" in text or text.lstrip().startswith(("[", "{", "- "))


def load_script(text: str, source: str) -> dict[str, Any]:
    """What the agent program plays: `turns`, `otherwise` and, where asked for, `auth`."""
    return _Reader(read_yaml(text, source)).script()


class _Reader:
    def __init__(self, tree: Tree) -> None:
        self._tree = tree

    def script(self) -> dict[str, Any]:
        data = self._tree.data
        if isinstance(data, list):
            return {"turns": [{"match": None, "steps": self._steps(data, ())}], "otherwise": []}
        self._fields(data, (), SCRIPT, "a list of steps, or a mapping with 'turns'")
        found: dict[str, Any] = {
            "turns": [self._turn(turn, ("turns", i)) for i, turn in enumerate(data.get("turns", []))],
            "otherwise": self._steps(data.get("otherwise", []), ("otherwise",)),
        }
        return {**found, "auth": data["auth"]} if "auth" in data else found

    def _turn(self, turn: Any, path: tuple[Any, ...]) -> dict[str, Any]:
        if isinstance(turn, list):
            return {"match": None, "steps": self._steps(turn, path)}
        self._fields(turn, path, TURN, "a list of steps, or a mapping with 'steps'")
        match = turn.get("match")
        try:
            re.compile(match or "")
        except re.error as error:
            raise self._wrong((*path, "match"), f"'match' is not a regular expression: {error}") from None
        return {"match": match, "steps": self._steps(turn.get("steps", []), (*path, "steps"))}

    def _steps(self, steps: list[Any], path: tuple[Any, ...]) -> list[dict[str, Any]]:
        return [self._step(step, (*path, i)) for i, step in enumerate(steps)]

    def _step(self, step: Any, path: tuple[Any, ...]) -> dict[str, Any]:
        if isinstance(step, str) and step in STEPS:
            step = {step: True}
        if not isinstance(step, dict):
            raise self._wrong(path, "a step is a mapping such as 'say: hello'")
        names = [key for key in step if key in STEPS]
        if not names:
            key = next(iter(step), "")
            raise self._wrong((*path, key), f"unknown step '{key}'{_nearest(key, STEPS)}")
        if len(names) > 1:
            raise self._wrong(
                (*path, names[1]), f"'{names[0]}' and '{names[1]}' are two steps: start a new one with '-'"
            )
        value, extras = STEPS[names[0]]
        self._fields(step, path, {names[0]: value, **extras}, "")
        return {"do": names[0], **step}

    def _fields(self, data: Any, path: tuple[Any, ...], shapes: Mapping[str, ValueRule], expected: str) -> None:
        if not isinstance(data, dict):
            raise self._wrong(path, f"expected {expected}")
        for key, value in data.items():
            if key not in shapes:
                raise self._wrong((*path, key), f"unknown key '{key}'{_nearest(key, shapes)}")
            if problem := shapes[key].problem(value):
                raise self._wrong((*path, key), f"'{key}' {problem}")

    def _wrong(self, path: tuple[Any, ...], message: str) -> ConfigurationError:
        return ConfigurationError(f"{self._tree.source}:{self._tree.line(path)}: {message}.")


def _nearest(key: str, known: Mapping[str, Any]) -> str:
    close = get_close_matches(str(key), known, n=1, cutoff=0.5)
    return f"; did you mean '{close[0]}'?" if close else f"; known: {', '.join(sorted(known))}"
