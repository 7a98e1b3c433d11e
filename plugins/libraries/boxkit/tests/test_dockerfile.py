"""Reading Dockerfiles and `.dockerignore`."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchflow_boxkit import context as contexts
from benchflow_boxkit import dockerfile
from benchflow_boxkit.expansion import Unsupported, assignments, expand, words
from benchflow_core.errors import TaskError


def test_dockerfile_without_from_is_refused() -> None:
    with pytest.raises(TaskError, match="no FROM"):
        dockerfile.parse("RUN true\n", "Dockerfile")


def test_bases_and_stages_are_found() -> None:
    text = "ARG TAG=3\nFROM --platform=linux/amd64 a:$TAG AS One\nfrom one\nFROM b:${X:-1} as two\nFROM scratch\n"
    found = dockerfile.parse(text, "Dockerfile")
    assert list(dict.fromkeys(found.images())) == ["a:3", "b:1", ""]
    assert [found.base_of(t) for t in ("one", "1", "two", None)] == ["a:3", "a:3", "b:1", ""]


def test_what_stands_in_a_here_document_is_no_instruction() -> None:
    text = "FROM a AS x\nRUN <<-E cat > q\nSELECT 1\nFROM users\n\tE\nRUN b \\\n  # c\n\n  FROM d\nFROM x\nARG A=1 B='2 3' C\n"
    found = dockerfile.parse(text, "Dockerfile")
    assert found.images()[0] == "a" and found.base_of(None) == "a"
    other = dockerfile.with_arguments(dockerfile.override(found, "b"), {"B": "4", "C": "5"}).text
    wanted = text.replace("FROM a AS", "FROM b AS").replace("A=1 B='2 3' C", 'A=1 B="4" C="5"')
    assert other == wanted


ONE = "FROM x\n"


def only(text: str) -> tuple[int, str, str]:
    (found,) = dockerfile.parse(ONE + text, strict=True).stages[0].instructions
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
        dockerfile.parse(
            ONE + 'COPY --from=build --chown=a:b x y\nRUN --mount=type=cache,target=/c ["a","b"]\nCMD [x]', strict=True
        )
        .stages[0]
        .instructions
    )
    assert dict(copy.flags) == {"from": "build", "chown": "a:b"} and copy.text == "x y"
    assert dict(run.flags) == {"mount": "type=cache,target=/c"} and run.array() == ["a", "b"]
    assert cmd.array() is None, "not JSON: the shell form"


def test_heredocs() -> None:
    text = 'RUN <<A && cat <<-"B"\none\nA\n\ttwo $x\n\tB\nRUN done'
    first, second = dockerfile.parse(ONE + text, strict=True).stages[0].instructions
    assert [(h.name, h.text, h.literal) for h in first.heredocs] == [("A", "one\n", False), ("B", "two $x\n", True)]
    assert (second.line, second.text) == (7, "done")


def test_stages_and_escape() -> None:
    text = "# escape=`\n# syntax=docker/dockerfile:1\nARG V=1\nFROM a:$V AS One\nRUN x `\n y\nFROM --platform=linux/amd64 one\n"
    recipe = dockerfile.parse(text, strict=True)
    assert [(s.base, s.name, s.platform) for s in recipe.stages] == [("a:$V", "one", ""), ("one", "", "linux/amd64")]
    assert recipe.stages[0].instructions[0].text == "x  y"
    assert recipe.globals[0].text == "V=1"


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
        dockerfile.parse(text, strict=True)


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
