"""CTRF reports come out of a box: anything may be in them."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchflow_verifier_script.ctrf import read_outcomes


def test_outcomes_are_read_in_order(tmp_path: Path) -> None:
    path = tmp_path / "ctrf.json"
    path.write_text(
        '{"results": {"tests": [{"name": "a", "status": "passed"}, {"name": "b", "status": "failed", "trace": "x"},'
        ' {"name": "c", "status": "pending"}, {"name": "d", "status": "odd"}, 3]}}'
    )
    found = [(t.name, t.status, t.message) for t in read_outcomes(path)]
    assert found == [("a", "passed", ""), ("b", "failed", "x"), ("c", "skipped", ""), ("d", "error", "")]


@pytest.mark.parametrize(
    "text", ["", "nothing", "[]", "3", '{"results": 1}', '{"results": {"tests": {}}}', "[" * 100_000, '"\udc80"']
)
def test_what_is_no_report_gives_nothing(tmp_path: Path, text: str) -> None:
    path = tmp_path / "ctrf.json"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    assert read_outcomes(path) == ()


def test_missing_linked_and_large_reports_give_nothing(tmp_path: Path) -> None:
    assert read_outcomes(tmp_path / "none.json") == ()
    (tmp_path / "large.json").write_text('{"results": {"tests": []}}' + " " * 9_000_000)
    assert read_outcomes(tmp_path / "large.json") == ()
    assert read_outcomes(tmp_path) == ()


def test_the_plugin_is_found_by_its_method() -> None:
    from benchflow_verifier_script.plugin import benchflow_verifier

    spec = benchflow_verifier()
    assert spec.methods == {"test-script"} and spec.needs_box
