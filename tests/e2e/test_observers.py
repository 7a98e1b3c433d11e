"""Third parties watch a job without touching it: one frozen event per thing, and their failures stay theirs."""

from __future__ import annotations

import json


def test_an_observer_hears_everything_in_order_and_another_may_fail(bench, name, examples, watched, tmp_path):
    done = bench("eval", "create", "-t", examples / "hello-file", "-a", name("oracle"), more=watched)
    assert done.code == 0, done.err
    assert "✓ Score: 1/1" in done.out
    heard = [json.loads(line) for line in (tmp_path / "watched.jsonl").read_text().splitlines()]
    kinds = [h["event"] for h in heard]
    assert kinds[0] == "JobStarted" and kinds[-1] == "JobFinished"
    assert kinds[1] == "RolloutStarted" and kinds[-2] == "RolloutFinished"
    assert kinds.count("TurnStarted") == kinds.count("TurnFinished") == 1
    assert [h["phase"] for h in heard if h["event"] == "PhaseFinished"] == [
        "start",
        "install_agent",
        "execute",
        "verify",
        "cleanup",
    ]
    assert heard[0]["planned"] == 1
    assert all(h["seen"] > 0 for h in heard if "seen" in h)
    warnings = [line for line in done.err.splitlines() if "failing" in line]
    assert len(warnings) == 1
    assert (
        "someones-watch 1.0" in warnings[0]
        and "the dashboard is down" in warnings[0]
        and "-p no:failing" in warnings[0]
    )


def test_observers_are_not_loaded_for_help_and_can_be_blocked(bench, name, examples, watched, tmp_path):
    assert bench("--help", more=watched).code == 0
    assert bench("agent", "list", more=watched).code == 0
    blocked = bench(
        "-p", "no:someones-watch", "eval", "create", "-t", examples / "hello-file", "-a", name("oracle"), more=watched
    )
    assert blocked.code == 0, blocked.err
    assert not (tmp_path / "watched.jsonl").exists()
