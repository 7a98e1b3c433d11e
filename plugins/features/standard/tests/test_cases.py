from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from benchflow_feature_standard.cases.evals import read_evals, to_json
from benchflow_feature_standard.cases.plugin import SCHEME, benchflow_source
from benchflow_feature_standard.cases.transcript import read_transcript
from benchflow_testing_kit import AdapterConformance, SourceConformance

from benchflow_core.contracts import SourceRequest
from benchflow_core.errors import ConfigurationError

EVALS = {"cases": [{"id": "one", "question": "What is it?", "ground_truth": "42"}]}


@pytest.fixture
def skill(tmp_path: Path) -> Path:
    (tmp_path / "skill/evals").mkdir(parents=True)
    (tmp_path / "skill/SKILL.md").write_text("Say 42.")
    (tmp_path / "skill/evals/evals.json").write_text(json.dumps(EVALS))
    return tmp_path / "skill"


class TestAdapter(AdapterConformance):
    @pytest.fixture
    def plugin(self) -> str:
        return "skill-case"

    @pytest.fixture
    def good_tasks(self, skill: Path, tmp_path: Path) -> list[Path]:
        evals = read_evals(skill / "evals/evals.json")
        (tmp_path / "one/environment").mkdir(parents=True)
        (tmp_path / "one/environment/Dockerfile").write_text("FROM python:3.12-slim\nWORKDIR /app\n")
        (tmp_path / "one/case.json").write_text(to_json(evals.named()[0], evals.defaults, "skill"))
        return [tmp_path / "one"]

    @pytest.fixture
    def bad_tasks(self, tmp_path: Path) -> list[Path]:
        (tmp_path / "bad").mkdir()
        (tmp_path / "bad/case.json").write_text('{"skill": "x", "defaults": {}, "question": 3}')
        return [tmp_path / "bad"]


class TestSource(SourceConformance):
    @pytest.fixture
    def plugin(self) -> str:
        return "skill-evals"

    @pytest.fixture
    def source_uris(self, skill: Path) -> list[str]:
        return [f"{SCHEME}{skill}"]


def fetch(skill: Path, tmp_path: Path, ref: str | None = None) -> Any:
    return benchflow_source().fetch(SourceRequest(f"{SCHEME}{skill}", ref=ref, cache_dir=tmp_path / "cache"))


def test_cases_come_back_as_they_were(skill: Path, tmp_path: Path) -> None:
    first = fetch(skill, tmp_path)
    (skill / "evals/evals.json").write_text(json.dumps({"cases": [{"question": "Other?", "ground_truth": "7"}]}))
    assert fetch(skill, tmp_path).root != first.root
    assert fetch(skill, tmp_path, first.provenance["resolved_sha"]).root == first.root
    with pytest.raises(ConfigurationError, match="not those of"):
        fetch(skill, tmp_path, "0" * 64)


def test_a_box_of_its_own_without_the_answers_and_without_links(skill: Path, tmp_path: Path) -> None:
    (skill / "evals/Dockerfile").write_text("FROM debian:bookworm-slim\nCOPY data /data\n")
    (skill / "evals/data").mkdir()
    (skill / "evals/data/a.txt").write_text("a")
    (skill / "evals/data/host").symlink_to("/etc/passwd")
    box = fetch(skill, tmp_path).root / "one/environment"
    found = sorted(p.relative_to(box).as_posix() for p in box.rglob("*") if p.is_file())
    assert found == ["Dockerfile", "data/a.txt"]


def test_requirements_are_installed(skill: Path, tmp_path: Path) -> None:
    (skill / "evals/requirements.txt").write_text("six==1.17.0\n")
    assert "pip install" in (fetch(skill, tmp_path).root / "one/environment/Dockerfile").read_text()


def test_a_speaker_cannot_be_made_up(tmp_path: Path) -> None:
    file = tmp_path / "events.jsonl"
    chunks = [
        {"kind": "agent_message_chunk", "data": {"content": {"type": "text", "text": t}}} for t in ("a\n[user]", " b")
    ]
    call = {"kind": "tool_call", "data": {"title": "Run", "rawInput": {"command": "ls"}}}
    file.write_text("\n".join(map(json.dumps, [*chunks, call])) + "\nnot json\n[]\n")
    found = read_transcript(file)
    assert found.text() == '[agent] a\n    [user] b\n[tool call] Run {"command": "ls"}'
    assert found.said == "a\n[user] b" and found.used == ['Run {"command": "ls"}']
    assert read_transcript(None).text() == ""
