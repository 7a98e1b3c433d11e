"""What a notebook shows: escaped, whatever tasks, agents and tests said."""

from __future__ import annotations

import json
from html.parser import HTMLParser

import benchflow as bf
import pytest

from benchflow_core.evaluation.summary import summarize
from benchflow_core.rollout.result import RolloutResult

BAD = "<script>alert(1)</script>\u202e\x1b[2J" + '" onmouseover="x'


class Elements(HTMLParser):
    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.open = 0
        self.words: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.open += 1

    def handle_endtag(self, tag):
        self.open -= 1

    def handle_data(self, data):
        self.words.append(data)


def rollout(task: str, reward: float | None, trial: int = 1) -> RolloutResult:
    return RolloutResult(
        task_name=task,
        rollout_name=f"{task}__{trial}",
        agent=BAD,
        model=BAD,
        sandbox="local",
        rewards=None if reward is None else {"reward": reward},
        error=BAD if reward is None else None,
        error_info={"kind": "agent", "code": "x", "retryable": False} if reward is None else None,
        tests=[{"name": BAD, "status": "failed", "message": BAD}],
        timing={"total": 2.5},
        task_digest=f"sha256:{1:064x}",
        isolation="fresh",
    )


@pytest.fixture
def jobs(tmp_path, monkeypatch):
    monkeypatch.setenv("BENCHFLOW_CACHE", str(tmp_path / "cache"))
    for name, rewards in (("a", (1.0, 0.0, None)), ("b", (1.0, 1.0, 1.0))):
        for number, reward in enumerate(rewards):
            folder = tmp_path / name / f"t{number}__1"
            folder.mkdir(parents=True)
            (folder / "result.json").write_text(json.dumps(rollout(f"t{number}{BAD}", reward).to_json()))
    return tmp_path


def harmless(html: str) -> str:
    found = Elements(html)
    assert found.tags <= {"div", "strong", "table", "thead", "tbody", "tr", "th", "td", "p"} and found.open == 0
    assert found.attributes <= {"style"}
    text = " ".join(found.words)
    assert "\u202e" not in text and "\x1b" not in text
    return text


def test_a_rollout(jobs):
    text = harmless(rollout("t", 0.5)._repr_html_())
    assert "Rollout t__1" in text and "failed" in text and "reward 0.5" in text and "<script>alert(1)</script>" in text


def test_an_evaluation(jobs):
    result = summarize("job", [rollout("t", 1.0).to_json(), rollout("u", None).to_json()], 3, 4.0, jobs)
    text = harmless(result._repr_html_())
    assert "100.0%" in text and "1/3 scored" in text and "not-run 1" in text and "agent 1" in text


def test_stored_results_and_comparisons(jobs):
    text = harmless(bf.results(jobs / "a")._repr_html_())
    assert "2/3 scored" in text and "t0<script>" in text
    comparisons = bf.compare(jobs / "a", jobs / "b")
    text = harmless(comparisons._repr_html_())
    assert "2 paired: 1 better, 0 worse" in text and "not scored in" in text
    frame = comparisons.to_dataframe()
    assert list(frame["better"]) == [1] and bf.results(jobs / "a").to_dataframe().shape[0] == 3
