"""The use cases: each example is run as its first line says."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "examples" / "use-cases"


@pytest.mark.parametrize("file", sorted(FOLDER.glob("*.yaml")), ids=lambda path: path.stem)
def test_use_case(bench, result_of, name, file, tmp_path):
    text = file.read_text().replace("agent: scripted", f"agent: {name('scripted')}")
    text = text.replace("environment: local", f"environment: {name('local')}")
    (tmp_path / "examples/use-cases").mkdir(parents=True)
    (tmp_path / "examples/tasks").symlink_to(FOLDER.parent / "tasks")
    (tmp_path / "examples/use-cases" / file.name).write_text(text)
    command = shlex.split(text.splitlines()[0].removeprefix("# bench "))
    done = bench(*command)
    assert done.code == 0, done.err
    result = result_of()
    assert result["rewards"] == {"reward": 1.0}, result
    events = [json.loads(line) for line in (result["dir"] / "events.jsonl").read_text().splitlines()]
    turns = [e for e in events if e["kind"] == "turn_started"]
    assert len(turns) == text.count("- role:"), "every turn was played"
    messages = [e["data"]["to"] for e in events if e["kind"] == "outbox_message"]
    assert bool(messages) == (".outbox" in text)
