from __future__ import annotations

import os
from pathlib import Path

import pytest
from benchflow_command_authoring.check import check_task
from benchflow_command_authoring.write_task import init_task, migrate_task

from benchflow_core.cli.core import CoreOfCommands
from benchflow_core.errors import ConfigurationError, TaskError, UsageError
from benchflow_core.plugins import registry
from benchflow_core.task import load_task, task_digest

CORE = CoreOfCommands()


@pytest.mark.parametrize("pytest_", [True, False])
@pytest.mark.parametrize("format_", [a.name for a in registry().all("adapter") if a.spec.scaffold])
def test_a_new_task_passes_its_check(tmp_path: Path, format_: str, pytest_: bool) -> None:
    folder, scaffold = init_task(CORE, "my-task", tmp_path / "tasks", format=format_, pytest=pytest_)
    assert check_task(CORE, folder) == []
    assert folder == tmp_path / "tasks" / "my-task" and scaffold.next_steps
    task = load_task(folder)
    script = task.verifier.tests[0] / task.verifier.script
    assert os.access(script, os.X_OK) and task.solution and task.environment.allow_substitute
    assert any(folder.rglob("*.py")) is pytest_


def test_without_a_solution(tmp_path: Path) -> None:
    folder, _ = init_task(CORE, "t", tmp_path, solution=False)
    assert [f.code for f in check_task(CORE, folder)] == ["no-solution"]


def test_nothing_is_overwritten_and_nothing_is_left_half_done(tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    with pytest.raises(ConfigurationError, match="exists already"):
        init_task(CORE, "t", tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["t"]


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "../x", "-x", ".hidden", "a b", "é", "x" * 200])
def test_names_that_are_no_names(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError):
        init_task(CORE, name, tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigurationError, match="cannot be written"):
        init_task(CORE, "t", tmp_path / "file")


def test_migration_keeps_what_the_task_means(make_task) -> None:
    config = """
    version = "1.0"
    bogus = 3
    [metadata]
    author = "me"
    day = 2024-05-01
    [agent]
    timeout_sec = 90
    user = "bob"
    [verifier]
    timeout_sec = 33
    [verifier.env]
    A = "b"
    [environment]
    cpus = 2
    memory = "4G"
    storage_mb = 100
    allow_internet = false
    docker_image = "x:1"
    [solution.env]
    S = "t"
    """
    instruction = "<!-- canary GUID 123 -->\n\nDo this:\n\n## prompt\n\nnot a section\n"
    folder = make_task(files={"task.toml": config, "instruction.md": instruction})
    before = load_task(folder)
    name, migration = migrate_task(CORE, folder)
    after = load_task(folder)
    assert (before.format, after.format, name) == ("harbor", "task.md", "task-md")
    assert after.instruction == before.instruction.strip()
    for field in ("name", "environment", "solution", "agent_timeout", "agent_user", "artifacts"):
        assert getattr(after, field) == getattr(before, field), field
    assert after.verifier == before.verifier
    assert after.metadata["author"] == "me" and after.metadata["day"] == "2024-05-01"
    assert after.metadata["benchflow"]["compat"]["extra"] == {"bogus": 3}
    assert "canary GUID 123" in (folder / "task.md").read_text()
    assert (folder / "task.toml").exists() and any("reward_range" in loss for loss in migration.losses)


def test_migration_of_a_task_with_steps(make_task) -> None:
    files = {
        "task.toml": '[[steps]]\nname = "a"\nmin_reward = 0.5\n[steps.verifier.environment]\ndocker_image = "v"\n',
        "steps/a/instruction.md": "Step a.\n",
        "instruction.md": None,
    }
    folder = make_task(files=files)
    before = load_task(folder)
    migrate_task(CORE, folder, remove_superseded=True)
    after = load_task(folder)
    assert not (folder / "task.toml").exists()
    assert [s.instruction for s in after.steps] == ["Step a.\n"]
    assert after.steps[0].min_reward == before.steps[0].min_reward
    assert after.steps[0].verifier.environment and after.steps[0].verifier.environment.image == "v"


def test_migration_asks_before_it_overwrites(make_task) -> None:
    folder = make_task()
    migrate_task(CORE, folder)
    with pytest.raises(ConfigurationError, match="task already"):
        migrate_task(CORE, folder, to="task-md")
    (folder / "task.md").write_text("notes, no frontmatter\n")
    with pytest.raises(ConfigurationError, match=r"task\.md exists already"):
        migrate_task(CORE, folder)
    migrate_task(CORE, folder, overwrite=True)
    assert load_task(folder).format == "task.md"


def test_migration_refuses_what_the_other_format_does_not_take(make_task) -> None:
    folder = make_task(files={"task.toml": "[agent]\ntimeout_sec = -1\n"})
    digest = task_digest(folder)
    with pytest.raises(TaskError, match=r"agent\.timeout_sec must be a number of seconds above zero"):
        migrate_task(CORE, folder)
    assert task_digest(folder) == digest, "nothing was written"
