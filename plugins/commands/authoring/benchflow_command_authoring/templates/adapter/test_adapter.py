"""The conformance suite on a sample task, and on broken ones."""

import json
from pathlib import Path

import pytest
from benchflow_testing_kit import AdapterConformance

SAMPLE = {
    "name": "hello",
    "instruction": "Write 'hello' to /app/out.txt.",
    "image": "debian:bookworm-slim",
    "tests": "tests",
    "solution": "solution",
}
TEST = """#!/bin/sh
if [ "$(cat /app/out.txt)" = hello ]; then echo 1; else echo 0; fi >/logs/verifier/reward.txt
"""


def write_task(folder: Path, text: str) -> Path:
    (folder / "tests").mkdir(parents=True)
    (folder / "solution").mkdir()
    (folder / "{{name}}.json").write_text(text)
    (folder / "tests" / "test.sh").write_text(TEST)
    (folder / "solution" / "solve.sh").write_text("#!/bin/sh\nmkdir -p /app\necho hello >/app/out.txt\n")
    return folder


class TestAdapter(AdapterConformance):
    @pytest.fixture
    def plugin(self) -> str:
        return "{{name}}"

    @pytest.fixture
    def good_tasks(self, tmp_path: Path) -> list[Path]:
        return [write_task(tmp_path / "hello", json.dumps(SAMPLE))]

    @pytest.fixture
    def bad_tasks(self, tmp_path: Path) -> list[Path]:
        broken = ["{", "[]", json.dumps({**SAMPLE, "name": 5}), json.dumps({**SAMPLE, "tests": "../hello/tests"})]
        return [write_task(tmp_path / f"bad-{n}", text) for n, text in enumerate(broken)]
