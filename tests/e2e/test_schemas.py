"""Every file a rollout writes has the shape that is published for it, for good ends and for bad ones."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchflow_core.cli.schema import published
from benchflow_core.results.schemas import SCHEMAS


@pytest.mark.parametrize("how", ["passes", "fails", "times-out", "steps", "acp"])
def test_what_is_written_is_what_is_published(bench, name, examples, tmp_path, how):
    script = tmp_path / "s.yaml"
    last = "sleep 60" if how == "times-out" else "echo hi"
    script.write_text(f"turns:\n  - steps:\n      - think: hm\n      - say: hello\n      - run: '{last}'\n")
    args = {
        "passes": ["-t", examples / "hello-file", "-a", name("oracle")],
        "fails": ["-t", examples / "hello-file", "-a", name("nop")],
        "times-out": [
            "-t",
            examples / "hello-file",
            "-a",
            name("scripted"),
            "--agent-option",
            f"script={script}",
            "--timeout",
            "4",
        ],
        "steps": ["-t", examples / "two-step-notes", "-a", name("oracle")],
        "acp": ["-t", examples / "hello-file", "-a", name("scripted"), "--agent-option", f"script={script}"],
    }[how]
    assert bench("eval", "create", *args).code == 0
    job = next((tmp_path / "jobs").iterdir())
    SCHEMAS["summary"].model_validate_json((job / "summary.json").read_text())
    rollout = next(p.parent for p in job.glob("*/result.json"))
    for file in ("result", "config", "timing", "sandbox", "lock"):
        SCHEMAS[file].model_validate_json((rollout / f"{file}.json").read_text())
    for line in (rollout / "events.jsonl").read_text().splitlines():
        SCHEMAS["event"].model_validate_json(line)
    for line in (rollout / "trajectory/acp_trajectory.jsonl").read_text().splitlines():
        assert json.loads(line)["type"]


def test_published_files_are_the_models():
    folder = Path(__file__).parents[2] / "docs" / "schemas"
    assert sorted(p.stem for p in folder.glob("*.json")) == sorted(published())
