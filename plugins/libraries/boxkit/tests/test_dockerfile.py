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


def test_what_stands_in_a_here_document_is_no_instruction() -> None:
    text = "FROM a AS x\nRUN <<-E cat > q\nSELECT 1\nFROM users\n\tE\nRUN b \\\n  # c\n\n  FROM d\nFROM x\nARG A=1 B='2 3' C\n"
    found = dockerfile.parse(text, "Dockerfile")
    assert found.bases == ("a",) and found.base_of(None) == "a"
    other = dockerfile.with_arguments(dockerfile.override(found, "b"), {"B": "4", "C": "5"}).text
    wanted = text.replace("FROM a AS", "FROM b AS").replace("A=1 B='2 3' C", 'A=1 B="4" C="5"')
    assert other == wanted


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
