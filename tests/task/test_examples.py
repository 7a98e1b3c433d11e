"""The bundled example tasks are good tasks: they load, pass their check, and ask for nothing special."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchflow_command_authoring.check import check_task

from benchflow_core.cli.core import CoreOfCommands
from benchflow_core.task import find_tasks, load_task, required_capabilities

EXAMPLES = Path(__file__).parents[2] / "examples" / "tasks"


@pytest.fixture(params=find_tasks(EXAMPLES), ids=lambda path: path.name)
def example(request) -> Path:
    return request.param


def test_check_has_nothing_to_say(example: Path) -> None:
    assert check_task(CoreOfCommands(), example) == []


def test_it_runs_without_an_image(example: Path) -> None:
    assert required_capabilities(load_task(example)) == {}


def test_it_has_scripts_for_the_scripted_agent(example: Path) -> None:
    script = pytest.importorskip("benchflow_agent_scripted.script")
    for name in ("solve.yaml", "wrong.yaml"):
        file = example / "scripted" / name
        assert script.load_script(file.read_text(), str(file))["turns"]


def test_they_cover_the_features() -> None:
    tasks = [load_task(path) for path in find_tasks(EXAMPLES)]
    assert len(tasks) >= 6
    assert {task.format for task in tasks} == {"harbor", "task.md"}
    assert any(task.steps for task in tasks)
