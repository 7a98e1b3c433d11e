"""Finding the line of a key in TOML and YAML."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchflow_adapter_harbor.frontmatter import split_document
from benchflow_adapter_harbor.tomlfile import line_in_toml

TOML = '''# comment [not.a.table]
top = 1
multi = """
[fake]
key = "x" # no
"""
literal = \'\'\'
[[fake]]
\'\'\'
list = [ # first
  "a",

  {x = 1, y = [1, 2]}, # "quote
  "b # c",
]
inline = {a = {b = 1}, "c" = 2}
dotted.key.here = 1
"quoted.key" = 1
[table."with space"]
value = 'it''
[a.b]
c = 1
[[steps]]
name = "one"
[steps.agent]
user = "x"
[[steps]]
name = "two"
[[steps.sub]]
z = 1
[[steps.sub]]
z = 2
'''.replace("'it''", "'it'")

PLACES = {
    ("top",): 2,
    ("multi",): 3,
    ("literal",): 7,
    ("list",): 10,
    ("list", 0): 11,
    ("list", 1): 13,
    ("list", 1, "y"): 13,
    ("list", 2): 14,
    ("inline",): 16,
    ("inline", "a", "b"): 16,
    ("dotted",): 17,
    ("dotted", "key", "here"): 17,
    ("quoted.key",): 18,
    ("table", "with space"): 19,
    ("table", "with space", "value"): 20,
    ("a", "b", "c"): 22,
    ("steps",): 23,
    ("steps", 0, "name"): 24,
    ("steps", 0, "agent"): 25,
    ("steps", 0, "agent", "user"): 26,
    ("steps", 1): 27,
    ("steps", 1, "name"): 28,
    ("steps", 1, "agent", "gone"): 27,
    ("steps", 1, "sub", 1, "z"): 32,
    ("gone",): None,
}


@pytest.mark.parametrize("where", PLACES, ids=str)
def test_toml(where) -> None:
    assert line_in_toml(TOML, where) == PLACES[where]


def test_yaml() -> None:
    text = "---\na: 1\nb:\n  - c: 1\n  - d:\n      e: 2\n---\nbody\n"
    document = split_document(text, Path("x.md"))
    assert document.line_of(("a",)) == 2
    assert document.line_of(("b", 1, "d", "e")) == 6
    assert document.line_of(("b", 1, "gone")) == 5
    assert document.line_of(("gone",)) is None
    assert (document.body, document.body_line) == ("body\n", 8)
