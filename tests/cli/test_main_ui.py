"""The plain printing that every command shares."""

from __future__ import annotations

import pytest

from benchflow_core.cli.ui import Ui, printable


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain and ünïcödé 漢字", "plain and ünïcödé 漢字"),
        ("\x1b[2J\x1b]0;title\x07", r"\x1b[2J\x1b]0;title\x07"),
        ("a\rb", r"a\rb"),
        ("one\ntwo\tthree", "one two three"),
        ("\u202egnp.exe", r"\u202egnp.exe"),
        ("zero\u200bwidth", r"zero\u200bwidth"),
        ("c1 \x9b31m", r"c1 \x9b31m"),
        ("half \ud800", r"half \ud800"),
        ("no\u00a0break", "no break"),
        ("line\u2028separator", r"line\u2028separator"),
        ("\0", r"\x00"),
    ],
)
def test_untrusted_text_is_made_visible(text, shown):
    assert printable(text) == shown


def test_lines_are_kept_where_wanted():
    assert printable("a\n\tb\x1b", lines=True) == "a\n\tb\\x1b"


def test_a_table_is_aligned_whatever_the_script(capsys):
    Ui().table(("NAME", "WHAT"), [("漢字", "two wide"), ("e\u0301", "one narrow"), ("x", "evil\x1b[0m\nline")])
    assert capsys.readouterr().out.splitlines() == [
        "NAME  WHAT",
        "漢字  two wide",
        "e\u0301     one narrow",
        r"x     evil\x1b[0m line",
    ]


def test_a_table_without_rows_and_without_width(capsys, monkeypatch):
    Ui().table(("A", "B"), [])
    assert capsys.readouterr().out == "A  B\n"
    monkeypatch.setenv("COLUMNS", "10")
    Ui().table(("A", "B"), [("x" * 20, "y z " * 10)])
    assert len(capsys.readouterr().out.splitlines()) == 2, "too narrow to wrap: better long than unreadable"


def test_quiet_silences_notes_only(capsys):
    ui = Ui(quiet=True)
    ui.note("by the way")
    ui.warn("look\nhere")
    ui.out("result")
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("result\n", "warning: look here\n")


def test_emit_prints_one_or_the_other(capsys):
    Ui().emit({"a": 1}, lambda: print("text"))
    assert capsys.readouterr().out == "text\n"
    ui = Ui(json=True)
    ui.emit({"ä": 1}, lambda: print("text"))
    assert capsys.readouterr().out == '{"ä": 1}\n' and ui.emitted
