"""Reading Dockerfiles: lines, variables, ignored files."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchflow_core.errors import TaskError
from benchflow_sandbox_local.dockerfile.build import needed_stages
from benchflow_sandbox_local.dockerfile.expand import Unsupported, assignments, expand, words
from benchflow_sandbox_local.dockerfile.ignore import Context
from benchflow_sandbox_local.dockerfile.parser import parse

ONE = "FROM x\n"


def only(text: str) -> tuple[int, str, str]:
    (found,) = parse(ONE + text).stages[0].instructions
    return found.line, found.name, found.text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("RUN echo a", (2, "RUN", "echo a")),
        ("run\techo a", (2, "RUN", "echo a")),
        ("\n\n  RUN echo a  ", (4, "RUN", "echo a")),
        ("RUN echo a \\\n  b", (2, "RUN", "echo a   b")),
        ("RUN echo a \\  \n  b", (2, "RUN", "echo a   b")),
        ("RUN a && \\\n# a remark\n\n  b", (2, "RUN", "a &&   b")),
        ("RUN echo '# no remark'", (2, "RUN", "echo '# no remark'")),
        ("RUN a\r\n", (2, "RUN", "a")),
        ("CMD", (2, "CMD", "")),
        ('ENTRYPOINT ["a", "b"]', (2, "ENTRYPOINT", '["a", "b"]')),
    ],
)
def test_lines(text: str, expected: tuple[int, str, str]) -> None:
    assert only(text) == expected


def test_flags_and_arrays() -> None:
    copy, run, cmd = (
        parse(ONE + 'COPY --from=build --chown=a:b x y\nRUN --mount=type=cache,target=/c ["a","b"]\nCMD [x]')
        .stages[0]
        .instructions
    )
    assert dict(copy.flags) == {"from": "build", "chown": "a:b"} and copy.text == "x y"
    assert dict(run.flags) == {"mount": "type=cache,target=/c"} and run.array() == ["a", "b"]
    assert cmd.array() is None, "not JSON: the shell form"


def test_heredocs() -> None:
    text = 'RUN <<A && cat <<-"B"\none\nA\n\ttwo $x\n\tB\nRUN done'
    first, second = parse(ONE + text).stages[0].instructions
    assert [(h.name, h.text, h.literal) for h in first.heredocs] == [("A", "one\n", False), ("B", "two $x\n", True)]
    assert (second.line, second.text) == (7, "done")


def test_stages_and_escape() -> None:
    text = "# escape=`\n# syntax=docker/dockerfile:1\nARG V=1\nFROM a:$V AS One\nRUN x `\n y\nFROM --platform=linux/amd64 one\n"
    recipe = parse(text)
    assert [(s.base, s.name, s.platform) for s in recipe.stages] == [("a:$V", "one", ""), ("one", "", "linux/amd64")]
    assert recipe.stages[0].instructions[0].text == "x  y"
    assert recipe.globals[0].text == "V=1"


def test_only_needed_stages_are_built() -> None:
    text = (
        "FROM a AS base\nFROM b AS unused\nFROM c AS tools\nFROM base\nCOPY --from=tools /x /x\nCOPY --from=0 /y /y\n"
    )
    assert needed_stages(parse(text), {}) == [0, 2, 3]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "Dockerfile:1: there is no FROM"),
        ("RUN x", "Dockerfile:1: RUN comes before"),
        ("FROM a\n\nRUNN x", "Dockerfile:3: 'RUNN' is not an instruction"),
        ("FROM a\nRUN", "Dockerfile:2: RUN needs an argument"),
        ("FROM a b", "Dockerfile:1: FROM 'a b' is not understood"),
        ("FROM a\nRUN <<E\nx", "Dockerfile:2: the heredoc E never ends"),
    ],
)
def test_bad_files_are_named_by_line(text: str, message: str) -> None:
    with pytest.raises(TaskError, match=message.replace("(", "\\(")):
        parse(text)


VALUES = {"a": "1", "empty": "", "home": "/root"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("$a", "1"),
        ("x${a}y", "x1y"),
        ("$missing-", "-"),
        ("${missing:-d}", "d"),
        ("${empty:-d}", "d"),
        ("${empty-d}", ""),
        ("${a:+set}", "set"),
        ("${empty:+set}", ""),
        ("${empty+set}", "set"),
        ("${missing:-${a}x}", "1x"),
        ("\\$a", "$a"),
        ("'$a'", "$a"),
        ('"$a b"', "1 b"),
        ('"\\$a"', "$a"),
        ("$", "$"),
        ("a$", "a$"),
    ],
)
def test_expansion(text: str, expected: str) -> None:
    assert expand(text, VALUES) == expected


@pytest.mark.parametrize("text", ["${a#x}", "${}", "${a", "'open", '"open', "${missing:?not there}"])
def test_unknown_expansions_are_refused(text: str) -> None:
    with pytest.raises(Unsupported):
        expand(text, VALUES)


def test_words_and_assignments() -> None:
    assert words("a 'b c' \"$a d\" e\\ f", VALUES) == ["a", "b c", "1 d", "e f"]
    assert assignments('A=1 B="two words" C=$a', VALUES) == {"A": "1", "B": "two words", "C": "1"}
    assert assignments("OLD the rest $a", VALUES) == {"OLD": "the rest 1"}
    with pytest.raises(Unsupported):
        assignments("LONELY", VALUES)


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
