"""The commands as a user runs them."""

from __future__ import annotations

import json
import re
from pathlib import Path


def files_of(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_init_check_list_digest(run_bench, tmp_path: Path) -> None:
    made = run_bench("tasks", "init", "one")
    assert made.returncode == 0 and made.stdout.startswith("Made tasks/one:")
    documented = {"task.toml", "instruction.md", "environment/Dockerfile", "tests/test.sh", "solution/solve.sh"}
    assert files_of(tmp_path / "tasks/one") == documented | {"tests/test_outputs.py"}
    assert run_bench("tasks", "init", "two", "--format", "task-md", "--no-pytest", "--no-solution").returncode == 0
    assert files_of(tmp_path / "tasks/two") == {"task.md", "environment/Dockerfile", "verifier/test.sh"}
    assert run_bench("tasks", "init", "one").stderr.startswith("error: tasks/one exists already.")

    checked = run_bench("tasks", "check", "tasks")
    assert checked.returncode == 0
    assert checked.stdout.splitlines()[0] == "tasks/one: ok"
    assert checked.stdout.splitlines()[-1] == "tasks/two: ok (1 warning)"

    listed = run_bench("tasks", "list", "tasks", "--json")
    assert [(row["name"], row["solution"]) for row in json.loads(listed.stdout)] == [("one", "yes"), ("two", "no")]

    alone = run_bench("tasks", "digest", "tasks/one").stdout
    assert re.fullmatch(r"sha256:[0-9a-f]{64}\n", alone)
    assert run_bench("tasks", "digest", "tasks").stdout.splitlines()[0] == f"one {alone.strip()}"


def test_a_broken_task_is_explained(run_bench, make_task) -> None:
    folder = make_task(files={"task.toml": "[environment]\ncpus = 'x'\n"})
    checked = run_bench("tasks", "check", folder)
    assert checked.returncode == 1
    assert checked.stdout.splitlines() == [
        f"{folder}/task.toml:2: error: environment.cpus must be a whole number, got 'x'. [invalid]",
        f"{folder}: not ok (1 error)",
    ]
    (row,) = json.loads(run_bench("tasks", "check", folder, "--json").stdout)
    assert row["findings"][0] == {
        "severity": "error",
        "code": "invalid",
        "message": "environment.cpus must be a whole number, got 'x'",
        "file": f"{folder}/task.toml",
        "line": 2,
        "remedy": "",
    }
    listed = run_bench("tasks", "list", folder.parent)
    assert listed.returncode == 0 and "broken" in listed.stdout


def test_migrate(run_bench, make_task) -> None:
    folder = make_task()
    done = run_bench("tasks", "migrate", folder, "--remove-legacy", "--json")
    assert json.loads(done.stdout)["removed"] == ["task.toml", "instruction.md"]
    assert run_bench("tasks", "check", folder).returncode == 0


def test_errors_are_one_line(run_bench, tmp_path: Path) -> None:
    gone = run_bench("tasks", "check", "gone")
    assert (gone.returncode, gone.stderr) == (1, "error: task folder gone does not exist.\n")
    assert run_bench("tasks", "init", "a/b").returncode == 2
    assert "Invalid value for '--level'" in run_bench("tasks", "check", ".", "--level", "deep").stderr


def test_untrusted_text_does_not_reach_the_terminal_raw(run_bench, make_task) -> None:
    folder = make_task(files={"task.toml": '"\\u001b[31mred" = 1\n'})
    shown = run_bench("tasks", "check", folder).stdout
    assert "\x1b" not in shown and "\\x1b" in shown
