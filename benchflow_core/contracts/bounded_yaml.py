"""YAML that anybody may have written: plain data, and no more of it than the file is long for."""

from __future__ import annotations

from typing import Any, Final

from benchflow_core.errors import BenchflowError, ConfigurationError

__all__ = ["MAX_BYTES", "MAX_DEPTH", "MAX_VALUES", "check_yaml", "line_of", "lines_of", "load_yaml"]

MAX_BYTES: Final = 1024 * 1024
MAX_VALUES: Final = 20_000
MAX_DEPTH: Final = 100


def load_yaml(text: str, where: str, error: type[BenchflowError] = ConfigurationError) -> tuple[Any, Any]:
    """The value and its node; nothing but plain data can come of it. Raises `error`, with `where` and the line."""
    import yaml

    if len(text) > MAX_BYTES:
        raise error(f"{where} is larger than {MAX_BYTES // 1024} KiB.")
    try:
        loader = yaml.SafeLoader(text)
        node = loader.get_single_node()
        if node is None:
            return None, None
        check_yaml(node, where, error)
        return loader.construct_document(node), node
    except yaml.YAMLError as problem:
        mark = getattr(problem, "problem_mark", None)
        place = f", line {mark.line + 1}" if mark else ""
        raise error(f"{where}{place}: {getattr(problem, 'problem', None) or problem}.") from problem
    except RecursionError:
        raise error(f"{where}: nested too deeply.") from None
    except (ValueError, TypeError) as problem:
        raise error(f"{where}: cannot be read as YAML: {problem}.") from problem


def line_of(lines: dict[tuple[Any, ...], int], at: tuple[Any, ...]) -> int | None:
    """Return the line of a value, or of the nearest thing around it that has one."""
    return next((lines[at[:end]] for end in range(len(at), -1, -1) if at[:end] in lines), None)


def check_yaml(root: Any, where: str, error: type[BenchflowError] = ConfigurationError) -> None:
    """Refuse a node tree that is too large, too deep, or goes round in a circle, before anything is made of it.

    What an alias stands for counts as often as it is used: ten short lines can mean a thousand million values.
    """
    sizes: dict[int, int] = {}
    inside: set[int] = set()

    def size_of(node: Any, depth: int) -> int:
        line = f"{where}, line {node.start_mark.line + 1}"
        if id(node) in inside:
            raise error(f"{line}: an alias stands for something that it is a part of.")
        if depth > MAX_DEPTH:
            raise error(f"{line}: nested more than {MAX_DEPTH} levels deep.")
        if id(node) not in sizes:
            inside.add(id(node))
            if node.id == "scalar" and any("\ud800" <= char <= "\udfff" for char in node.value):
                raise error(f"{line}: half a surrogate pair is no text.")
            parts = [] if node.id == "scalar" else node.value
            nodes = (part for pair in parts for part in pair) if node.id == "mapping" else parts
            sizes[id(node)] = 1 + sum(size_of(part, depth + 1) for part in nodes)
            inside.discard(id(node))
        if sizes[id(node)] > MAX_VALUES:
            raise error(f"{line}: more than {MAX_VALUES} values, aliases counted where they are used.")
        return sizes[id(node)]

    size_of(root, 0)


def lines_of(node: Any) -> dict[tuple[Any, ...], int]:
    """Return the line of every value by its keys and indices from the top, for a node that was checked.

    What `<<` merges has the line it was written on, and keys written beside it go before.
    """
    lines: dict[tuple[Any, ...], int] = {}

    def note(node: Any, at: tuple[Any, ...]) -> None:
        lines.setdefault(at, node.start_mark.line + 1)
        if node.id == "sequence":
            for index, value in enumerate(node.value):
                note(value, (*at, index))
        for key, value in node.value if node.id == "mapping" else ():
            if key.id == "scalar" and key.value == "<<":
                for merged in value.value if value.id == "sequence" else [value]:
                    note(merged, at)
            else:
                lines[(*at, key.value)] = key.start_mark.line + 1
                note(value, (*at, key.value))

    if node is not None:
        note(node, ())
    return lines
