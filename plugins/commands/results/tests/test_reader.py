"""What commands of plugins read results with."""

from __future__ import annotations

import json

import pytest
from benchflow_command_results.reader import Reader, _made

from benchflow_core.cli.ui import Ui
from benchflow_core.contracts import JobResults, Panel, PanelText, ResultsReader, RolloutRecord
from benchflow_core.errors import ConfigurationError
from benchflow_core.evaluation.stored import StoredFiles
from benchflow_core.rollout.result import RolloutResult


@pytest.fixture
def job(tmp_path, monkeypatch):
    monkeypatch.setenv("BENCHFLOW_CACHE", str(tmp_path / "cache"))
    for number, reward in enumerate((1.0, 0.0)):
        folder = tmp_path / "job" / f"t{number}__1"
        folder.mkdir(parents=True)
        result = RolloutResult(f"t{number}", folder.name, "some", "m", "local", rewards={"reward": reward})
        (folder / "result.json").write_text(json.dumps(result.to_json()))
    begun = tmp_path / "job" / "t2__1"
    begun.mkdir()
    (begun / "events.jsonl").write_text('{"kind": "x"}\n')
    items = [{"rollout": f"t{n}__1", "task": f"/tasks/t{n}", "trial": 1, "arm": None} for n in range(4)]
    (tmp_path / "job" / "job.json").write_text(json.dumps({"items": items, "config": {"agent": "some"}}))
    return tmp_path / "job"


def test_a_job_is_read_through_the_index(job):
    reader: ResultsReader = Ui().results()
    found = reader.job(job)
    assert isinstance(found, JobResults) and [row["outcome"] for row in found.rows] == ["passed", "failed"]
    assert found.rows[0]["side"] == "some m" and found.unfinished == ["t2__1"] and len(found.planned) == 4
    assert (found.summary["total"], found.summary["score_ratio"]) == (4, 0.5)
    assert found.settings == {"agent": "some"} and not found.running and not found.finished
    assert list(reader.folders(job.parent)) == [job]
    with pytest.raises(ConfigurationError, match="is no job"):
        reader.job(job.parent / "cache")


def test_a_rollout_that_runs_has_no_result_yet(job):
    record = Reader(StoredFiles()).rollout(job / "t2__1")
    assert record.result == {} and [event["kind"] for event in record.events()] == ["x"]
    assert Reader(StoredFiles()).live(job) == {}


def test_what_is_hidden(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SOME_TOKEN", "very-secret")
    monkeypatch.setenv("HOME", "/home/ada")
    hidden = Reader(StoredFiles()).hide(b"very-secret in /home/ada/x, sk-" + b"a" * 30)
    assert hidden == b"[redacted] in ~/x, [redacted]"


def test_a_panel_that_fails_says_so_in_its_place(tmp_path):
    record = RolloutRecord(tmp_path, {}, {}, lambda: [])
    good = Panel("Title", [PanelText("text")])
    assert _made(lambda _: good, record) is good and _made(lambda _: None, record) is None
    broken = _made(lambda _: 1 / 0, record)
    assert broken is not None and "ZeroDivisionError" in broken.blocks[0].text
    wrong = _made(lambda _: "<b>no panel</b>", record)
    assert wrong is not None and wrong.blocks[0].text == "The plugin gave a str."
