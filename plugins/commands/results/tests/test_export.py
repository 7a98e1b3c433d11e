"""Exporters get finished rollouts as they are on disk, and write where they are told."""

from __future__ import annotations

import json

import pytest
from benchflow_command_results.export import export_job

from benchflow_core.contracts.exporters import ExporterSpec, RolloutRecord
from benchflow_core.errors import ConfigurationError, PluginFailed
from benchflow_core.evaluation.stored import StoredFiles
from benchflow_core.plugins import Loaded


def loaded(*args, **more) -> Loaded:
    return Loaded(kind="exporter", name="lines", distribution="", version="", spec=ExporterSpec(*args, **more))


def line(rollout: RolloutRecord, options) -> bytes:
    kinds = [event["kind"] for event in rollout.events()]
    data = {"task": rollout.result["task_name"], "limit": rollout.config["timeout_sec"], "events": kinds, **options}
    return json.dumps(data).encode() + b"\n"


@pytest.fixture
def job(make_job):
    path = make_job("j", {"a": [1.0], "b": [0.0]}, config={"timeout_sec": 9})
    for rollout in path.iterdir():
        (rollout / "events.jsonl").write_text('{"kind": "x"}\n{"kind": "y"}\n{"cut sho')
    return path


def test_lines_of_a_job_are_one_file(job, tmp_path):
    spec = loaded("lines", "all.jsonl", line, lines=True, options={"tag": "a word"})
    (written,) = export_job(StoredFiles(), job, spec, {"tag": "t"}, tmp_path / "out.jsonl")
    rows = [json.loads(text) for text in written.read_text().splitlines()]
    assert rows == [{"task": task, "limit": 9, "events": ["x", "y"], "tag": "t"} for task in ("a", "b")]
    assert export_job(StoredFiles(), job, spec, {}, None) == [job / "all.jsonl"]


def test_documents_lie_beside_their_rollouts_or_below_a_folder(job, tmp_path):
    spec = loaded("documents", "one.json", line)
    assert [path.parent.name for path in export_job(StoredFiles(), job, spec, {}, None)] == ["trainer", "trainer"]
    below = export_job(StoredFiles(), job, spec, {}, tmp_path / "out")
    assert sorted(path.relative_to(tmp_path / "out").parts[1] for path in below) == ["one.json", "one.json"]


@pytest.mark.parametrize("lines", [True, False])
@pytest.mark.parametrize("name", ["", ".", "..", "../out.json", "a/b", "/tmp/x", "a\0b"])
def test_a_file_name_that_leads_elsewhere_is_the_plugins_mistake(job, tmp_path, name, lines):
    for output in (None, tmp_path / "out"):
        with pytest.raises(PluginFailed, match="no plain name"):
            export_job(StoredFiles(), job, loaded("odd", name, line, lines=lines), {}, output)
    assert not (tmp_path / "out").exists()


def test_wrong_options_and_empty_folders_are_refused(job, tmp_path):
    spec = loaded("documents", "one.json", line, options={"tag": "a word"})
    with pytest.raises(ConfigurationError, match="no option 'tga'"):
        export_job(StoredFiles(), job, spec, {"tga": "x"}, None)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigurationError, match="no finished rollout"):
        export_job(StoredFiles(), tmp_path / "empty", spec, {}, None)
