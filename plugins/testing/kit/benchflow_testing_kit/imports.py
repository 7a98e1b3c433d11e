"""Which modules a source file imports, read without running it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

__all__ = ["PUBLIC", "forbidden_imports", "imported_modules"]

PUBLIC: Final = ("hookspecs", "contracts", "errors")
"""What plugins may import from `benchflow_core`."""


def imported_modules(file: Path) -> Iterator[tuple[int, str]]:
    """Line and absolute dotted name of everything imported, wherever in the file it stands."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"), str(file))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


def forbidden_imports(file: Path) -> list[str]:
    """Each import of the core's private modules, as `file:line: module`."""
    bad = []
    for line, module in imported_modules(file):
        parts = module.split(".")
        if parts[0] == "benchflow_core" and (len(parts) == 1 or parts[1] not in PUBLIC):
            bad.append(f"{file}:{line}: {module}")
    return bad
