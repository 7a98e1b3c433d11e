from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import pytest

from benchflow_core.errors import ErrorKind, TaskError
from benchflow_core.task import find_tasks, load_task, meets_minimum


def refusal(folder: Path) -> TaskError:
    with pytest.raises(TaskError) as caught:
        load_task(folder)
    assert caught.value.kind is ErrorKind.TASK
    return caught.value


def test_a_plain_task(make_task) -> None:
    task = load_task(make_task())
    assert (task.name, task.format, task.instruction) == ("demo", "harbor", "Do it.\n")
    assert task.solution and task.solution.script == "solve.sh"
    assert task.notices == ()


BROKEN = {
    "no tests": ({"tests/test.sh": None}, "tests/test.sh: does not exist: the task has no test."),
    "no instruction": ({"instruction.md": None}, "instruction.md: does not exist."),
    "not utf-8": ({"instruction.md": b"ok\ncaf\xe9\n"}, "instruction.md:2: is not UTF-8: byte 0xe9 at offset 6."),
    "broken toml": (
        {"task.toml": "[agent]\ntimeout_sec = 60s\n"},
        "task.toml:2: is not valid TOML: expected newline or end of document after a statement, in: timeout_sec = 60s.",
    ),
    "unquoted text": (
        {"task.toml": "[environment]\nos = linux\n"},
        "task.toml:2: is not valid TOML: invalid value, in: os = linux.",
    ),
    "unclosed": (
        {"task.toml": '[agent]\nuser = "x\n'},
        "task.toml:2: is not valid TOML: illegal character '\\n', in: user = \"x.",
    ),
    "wrong type": (
        {"task.toml": "[environment]\n\ncpus = 0.5\n"},
        "task.toml:3: environment.cpus must be a whole number, got 0.5.",
    ),
    "too deep": ({"task.toml": "a = " + "[" * 5000 + "]" * 5000}, "task.toml: is nested too deeply."),
}


@pytest.mark.parametrize("case", BROKEN)
def test_bad_input_is_named_with_file_and_line(make_task, case: str) -> None:
    files, expected = BROKEN[case]
    assert refusal(make_task(files=files)).message.endswith(expected)


def test_all_problems_are_listed_and_the_first_is_shown(make_task) -> None:
    config = '[environment]\ncpus = "x"\n[verifier]\ntimeout_sec = []\n[agent]\nuser = 1.5\n'
    error = refusal(make_task(files={"task.toml": config}))
    assert "task.toml:2: environment.cpus" in error.message and "(and 2 more)" in error.message
    assert [p["line"] for p in error.details["problems"]] == [2, 4, 6]


def test_folders_that_are_no_tasks(tmp_path: Path, make_task) -> None:
    assert refusal(tmp_path / "gone").message.endswith("does not exist.")
    (tmp_path / "file").write_text("")
    assert "is a file, not a task folder" in refusal(tmp_path / "file").message
    (tmp_path / "empty").mkdir()
    assert "it has none of task.md (task-md), task.toml (harbor)" in refusal(tmp_path / "empty").message
    make_task("many/one")
    assert refusal(tmp_path / "many").remedy == "It holds 1 task folders: name one of them."


def test_a_pipe_as_an_instruction_does_not_hang(make_task) -> None:
    folder = make_task(files={"instruction.md": None})
    os.mkfifo(folder / "instruction.md")
    start = time.monotonic()
    assert refusal(folder).message.endswith("instruction.md: is not a regular file.")
    assert time.monotonic() - start < 5


def test_a_folder_that_disappears(make_task) -> None:
    folder = make_task()
    load_task(folder)
    shutil.rmtree(folder)
    assert refusal(folder).message == f"task folder {folder} does not exist."


def test_find_tasks(tmp_path: Path, make_task) -> None:
    one = make_task("set/b")
    two = make_task("set/a", {"task.toml": "not toml at all ["})
    (tmp_path / "set" / "notes").mkdir()
    assert find_tasks(tmp_path / "set") == [two, one], "a broken task is found, so that it can be complained about"
    assert find_tasks(one) == [one]
    nested = make_task("data/tasks/x")
    assert find_tasks(tmp_path / "data") == [nested]
    with pytest.raises(TaskError, match="holds none"):
        find_tasks(tmp_path / "set" / "notes")


@pytest.mark.parametrize(
    ("rewards", "minimum", "expected"),
    [
        ({"reward": 0.5}, None, True),
        (None, None, True),
        ({"reward": 0.5}, 0.5, True),
        ({"reward": 0.49}, 0.5, False),
        (None, -100.0, False),
        ({"other": 1.0}, 0.0, False),
        ({"a": 1.0, "b": 0.2}, {"a": 1.0}, True),
        ({"a": 1.0, "b": 0.2}, {"a": 1.0, "b": 0.5}, False),
        ({"a": 1.0}, {"b": 0.0}, False),
        ({}, {}, True),
    ],
)
def test_minimum_between_steps(rewards, minimum, expected: bool) -> None:
    assert meets_minimum(rewards, minimum) is expected
