"""Reading Dockerfiles and `.dockerignore`."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchflow_boxkit import context as contexts
from benchflow_boxkit import dockerfile
from benchflow_core.errors import TaskError


def test_dockerfile_without_from_is_refused() -> None:
    with pytest.raises(TaskError, match="no FROM"):
        dockerfile.parse("RUN true\n", "Dockerfile")


def test_bases_and_stages_are_found() -> None:
    text = "ARG TAG=3\nFROM --platform=linux/amd64 a:$TAG AS One\nfrom one\nFROM b:${X:-1} as two\nFROM scratch\n"
    found = dockerfile.parse(text, "Dockerfile")
    assert found.bases == ("a:3", "b:1")
    assert [found.base_of(t) for t in ("one", "1", "two", None)] == ["a:3", "a:3", "b:1", ""]


@pytest.mark.parametrize(
    ("rules", "path", "out"),
    [
        ("*.pyc", "a.pyc", True),
        ("*.pyc", "d/a.pyc", False),
        ("**/*.pyc", "d/e/a.pyc", True),
        ("/d", "d/e", True),
        ("d/*\n!d/keep", "d/keep", False),
        ("d/*\n!d/keep", "d/other", True),
        ("[ab]?", "ax", True),
        ("[!ab]?", "ax", False),
        ("# x\n\n", "x", False),
    ],
)
def test_ignore_rules(tmp_path: Path, rules: str, path: str, out: bool) -> None:
    (tmp_path / ".dockerignore").write_text(rules)
    assert contexts.Context.of(tmp_path).ignored(path) is out
