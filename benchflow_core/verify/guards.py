"""The folder of ours in the verifier's box: the Python guard with what it has to know, and empty files for tools."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Final

from benchflow_core.contracts.sandboxes import Change
from benchflow_core.quick import dataclass
from benchflow_core.verify.ground import name_of, parent_of
from benchflow_core.verify.steering import EMPTY_FILES

__all__ = ["Knowledge", "concerns_perl", "concerns_python", "guard_line", "lay_out"]

_FILES: Final = {
    "start.py": "sitecustomize.py",
    "guard.py": "benchflow_guard.py",
    "guard_pytest.py": "benchflow_guard_pytest.py",
    "guard.pm": "BenchflowGuard.pm",
}
_PERL: Final = (".pm", ".pl")
_PYTHON: Final = (".py", ".pyc", ".so", ".pyd", ".zip", ".egg", ".toml", ".ini", ".cfg", ".pth")
_DOCTEST = re.compile(r"/test[^/]*\.(?:txt|rst)$")
"""pytest runs the examples in it."""


@dataclass(frozen=True, slots=True)
class Knowledge:
    """What the guard is told."""

    agents: Sequence[Change]
    python_path: tuple[str, ...] = ()
    configs: Mapping[str, str] = field(default_factory=dict)
    """A configuration file's path to a copy of the image's version."""
    editable: Mapping[str, str] = field(default_factory=dict)
    asked: Sequence[str] = ()
    """Of the agent's modules and configuration, what the instruction asks for."""

    def lines(self) -> Iterator[str]:
        """One thing per line, so that the guard can read it without importing anything."""
        folder = ""
        for change in sorted(self.agents, key=lambda c: parent_of(c.path)):
            if parent_of(change.path) != folder:
                folder = parent_of(change.path)
                yield _line("d", folder)
            yield _line("f", str(change.size if change.type == "file" else -1), name_of(change.path))
            if change.type == "link" or (change.type == "dir" and change.kind == "added"):
                yield _line("t", change.path)
        yield from (_line("c", *pair) for pair in self.configs.items())
        yield from (_line("e", *pair) for pair in self.editable.items())
        yield from (_line("p", entry) for entry in self.python_path)
        yield from (_line("a", path) for path in self.asked)


def _line(kind: str, *fields: str) -> str:
    escaped = (f.replace("\\", "\\b").replace("\n", "\\n").replace("\t", "\\t") for f in fields)
    return kind + "\t".join(escaped)


def concerns_python(agents: Sequence[Change]) -> bool:
    """Is there anything among the agent's files that an interpreter or its test runner could take up?"""
    files = (c for c in agents if c.type != "dir")
    return any(c.type == "link" or c.path.endswith(_PYTHON) or _DOCTEST.search(c.path) for c in files)


def concerns_perl(agents: Sequence[Change]) -> bool:
    return any(c.type != "dir" and c.path.endswith(_PERL) for c in agents)


def lay_out(folder: Path, knowledge: Knowledge | None, copies: Mapping[str, str]) -> None:
    """Write the folder's contents on the host, ready to upload. Without knowledge there is no guard."""
    folder.chmod(0o755)
    (folder / "own").mkdir()
    for name in EMPTY_FILES:
        (folder / name).touch()
    for name, text in copies.items():
        (folder / name).write_text(text, encoding="utf-8", errors="replace")
    if knowledge is not None:
        _guard(folder, knowledge)
    for path in folder.iterdir():
        path.chmod(0o755 if path.is_dir() else 0o644)


def _guard(folder: Path, knowledge: Knowledge) -> None:
    (folder / "seen").mkdir()
    for source, target in _FILES.items():
        shutil.copyfile(Path(__file__).parent / "guard" / source, folder / target)
    modules = "".join(f"{c.path}\n" for c in knowledge.agents if c.path.endswith(_PERL))
    (folder / "perl.txt").write_text(modules, encoding="utf-8", errors="surrogateescape")
    (folder / "origin.txt").write_text("\n".join(knowledge.lines()), encoding="utf-8", errors="surrogateescape")


def guard_line(folder: str) -> str:
    """One line for a `.pth` file: the guard also starts where a script sets PYTHONPATH anew."""
    start = f"(sys.path.append({folder!r}), __import__('benchflow_guard').start({folder!r}, _b))"
    there = f"sys.version_info >= (3, 6) and os.path.isdir({folder!r})"
    return f"import sys, os; _b = set(sys.modules); {there} and {start}"
