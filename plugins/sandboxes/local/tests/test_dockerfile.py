"""What a build needs of a Dockerfile, and ignored files."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchflow_boxkit.dockerfile import parse

from benchflow_core.errors import TaskError
from benchflow_sandbox_local.dockerfile.build import needed_stages
from benchflow_sandbox_local.dockerfile.ignore import Context


def test_only_needed_stages_are_built() -> None:
    text = (
        "FROM a AS base\nFROM b AS unused\nFROM c AS tools\nFROM base\nCOPY --from=tools /x /x\nCOPY --from=0 /y /y\n"
    )
    assert needed_stages(parse(text), {}) == [0, 2, 3]


@pytest.mark.parametrize(
    ("rules", "out", "kept"),
    [
        ("*.log", ["a.log"], ["d/a.log", "a.txt"]),
        ("**/*.log", ["a.log", "d/e/a.log"], ["a.txt"]),
        ("d", ["d", "d/x", "d/e/f"], ["dd", "x/d"]),
        ("/d/", ["d/x"], ["e"]),
        ("*\n!keep", ["a", "b/c"], ["keep", "keep/x"]),
        ("# remark\n\nd/*\n!d/in", ["d/a"], ["d/in", "d"]),
        ("a[0-9]?", ["a1x"], ["ax", "abx"]),
        ("d/**", ["d/a", "d/a/b"], ["d", "e"]),
    ],
)
def test_dockerignore(tmp_path: Path, rules: str, out: list[str], kept: list[str]) -> None:
    (tmp_path / ".dockerignore").write_text(rules)
    context = Context.of(tmp_path)
    assert [path for path in out if not context.ignored(path)] == []
    assert [path for path in kept if context.ignored(path)] == []


def test_sources_stay_inside_the_context(tmp_path: Path) -> None:
    root = tmp_path / "context"
    (root / "sub").mkdir(parents=True)
    (tmp_path / "outside").write_text("secret")
    for name in ("a.txt", "b.txt", "sub/c.txt"):
        (root / name).write_text(name)
    (root / "inner").symlink_to("sub")
    (root / "far").symlink_to("../outside")
    (root / "up").symlink_to("..")
    context = Context(root)
    assert context.find("*.txt", "x") == ["a.txt", "b.txt"]
    assert context.find("/sub/../a.txt", "x") == ["a.txt"]
    assert context.find("inner", "x") == ["sub"]
    for bad in ("../outside", "far", "up/outside", "nothing", "/../../etc/passwd"):
        with pytest.raises(TaskError, match="x: "):
            context.find(bad, "x")
