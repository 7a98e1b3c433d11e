"""What a job shows: nothing when quiet, plain lines without a terminal, a view on one; never raw bytes of a task."""

from __future__ import annotations

import io

import pytest

from benchflow_core.cli import progress as module
from benchflow_core.cli.dashboard import _View
from benchflow_core.cli.progress import Progress
from benchflow_core.cli.tracker import Tracker, amount, span
from benchflow_core.cli.ui import Ui

PLANNED = {"total": 4, "done": 1, "sandbox": "box", "isolation": "fresh", "chosen": False, "time": 1000.0}
HOSTILE = "ev\x1b[31mil\x07"


def finished(name, reward, **more):
    row = {"task_name": name, "rollout_name": name, "rewards": {"reward": reward} if reward is not None else None}
    return {**row, "error": None, "verifier_error": None, "timing": {"total": 1.0}, "time": 1010.0, **more}


EVENTS = [
    ("planned", PLANNED),
    ("started", {"rollout": "a", "task": HOSTILE, "attempt": 1, "time": 1001.0}),
    ("started", {"rollout": "b", "task": "slow", "attempt": 2, "arm": "x", "time": 1001.0}),
    ("finished", finished("good", 1.0)),
    ("retry", {"rollout": "c", "attempt": 1, "wait": 2.0, "error": HOSTILE, "time": 1010.0}),
    ("finished", finished("bad", None, error=HOSTILE)),
    (
        "live",
        {
            "time": 1010.0,
            "running": [
                {"rollout": "b", "phase": "execute", "turn": 3, "seconds": 61, "quiet_sec": 30.0, "tokens": 1234}
            ],
            "tokens": 12345,
            "cost_usd": 1.5,
        },
    ),
]


def test_plain_lines_where_there_is_no_terminal(capsys):
    with Progress(Ui()) as shown:
        for kind, data in EVENTS:
            shown.hear(kind, data)
    err = capsys.readouterr().err
    assert "4 rollouts, 1 of them finished before, on sandbox box" in err
    assert "[2/4] good: reward 1 in 1.0 s" in err and "[3/4] bad: unscored: ev" in err
    assert "\x1b" not in err and "\x07" not in err


def test_a_heartbeat_when_nothing_else_was_said_for_long(capsys, monkeypatch):
    shown = Progress(Ui())
    for kind, data in EVENTS[:4]:
        shown.hear(kind, data)
    capsys.readouterr()
    shown.hear(*EVENTS[-1])
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(module, "_HEARTBEAT", 0.0)
    shown.hear(*EVENTS[-1])
    assert "[2/4] after 10 s: 1 running; 1 passed" in capsys.readouterr().err


def test_nothing_with_quiet(capsys):
    with Progress(Ui(quiet=True)) as shown:
        for kind, data in EVENTS:
            shown.hear(kind, data)
    assert capsys.readouterr().err == ""


def test_a_large_job_does_not_print_a_line_for_each(capsys):
    shown = Progress(Ui())
    shown.hear("planned", {**PLANNED, "total": 10_000, "done": 0})
    capsys.readouterr()
    for number in range(100):
        shown.hear("finished", finished(f"t{number}", 1.0))
    assert capsys.readouterr().err == ""


def test_the_view_shows_counts_phases_and_spending_and_no_raw_bytes():
    from rich.console import Console

    tracker = Tracker()
    for kind, data in EVENTS:
        tracker.hear(kind, data)
    tracker.running["a"] = {"rollout": "a", "task": HOSTILE, "phase": "start"}
    out = io.StringIO()
    Console(file=out, width=120, force_terminal=False).print(_View(tracker))
    text = out.getvalue()
    for part in ("3/4", "1 passed, 0 failed, 1 unscored", "1 tried again", "12.3k tokens, 1.50 USD", "about 5 s left"):
        assert part in text, text
    assert "slow [x] (attempt 2)" in text and "execute" in text and "30 s ago" in text
    assert "\x1b" not in text and "\x07" not in text


def test_what_was_finished_earlier_does_not_count_for_the_pace():
    tracker = Tracker()
    tracker.hear("planned", {**PLANNED, "total": 11, "done": 9, "time": 0.0})
    assert tracker.eta is None
    tracker.hear("finished", {**finished("a", 1.0), "time": 60.0})
    assert tracker.eta == pytest.approx(tracker.seconds)


def test_numbers_for_people():
    assert [span(s) for s in (5, 90, 600, 7500, None)] == ["5 s", "90 s", "10 min", "2 h 05", "?"]
    assert [amount(n) for n in (950, 12_345, 4_100_000)] == ["950", "12.3k", "4.1M"]
