from __future__ import annotations

import os
from pathlib import Path

import pytest

from benchflow_core.errors import TaskError
from benchflow_core.task import load_task, task_files
from benchflow_core.task.files import os_problem


def listing(folder: Path, root: Path) -> list[str]:
    return [file.relative for file in task_files(folder, root)]


def test_files_and_links_that_stay_inside(tmp_path: Path) -> None:
    (tmp_path / "tests" / "sub").mkdir(parents=True)
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "data.txt").write_text("x")
    (tmp_path / "tests" / "sub" / "b").write_text("x")
    (tmp_path / "tests" / "a").symlink_to("../shared/data.txt")
    (tmp_path / "tests" / "more").symlink_to("../shared")
    (tmp_path / "tests" / "dangling").symlink_to("nothing")
    assert listing(tmp_path / "tests", tmp_path) == ["a", "more/data.txt", "sub/b"]


@pytest.mark.parametrize("target", ["/etc/hostname", "/etc", "../../outside", "../../{name}-sibling"])
def test_a_link_that_leaves_is_refused(tmp_path: Path, target: str) -> None:
    root = tmp_path / "task"
    (root / "tests").mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    (tmp_path / "task-sibling").mkdir()
    (root / "tests" / "link").symlink_to(target.format(name="task"))
    with pytest.raises(TaskError, match="leads out of the task folder") as caught:
        listing(root / "tests", root)
    assert caught.value.details["file"].endswith("tests/link")


def test_a_folder_that_is_itself_a_link_out(tmp_path: Path) -> None:
    (tmp_path / "task").mkdir()
    (tmp_path / "task" / "tests").symlink_to("/etc")
    with pytest.raises(TaskError, match="leads out"):
        listing(tmp_path / "task" / "tests", tmp_path / "task")


@pytest.mark.parametrize("link", ["..", "."])
def test_cycles_are_refused(tmp_path: Path, link: str) -> None:
    (tmp_path / "tests" / "sub").mkdir(parents=True)
    (tmp_path / "tests" / "sub" / "up").symlink_to(link)
    with pytest.raises(TaskError, match="links back"):
        listing(tmp_path / "tests", tmp_path)


def test_links_to_each_other(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(TaskError, match="link that leads nowhere"):
        listing(tmp_path, tmp_path)


def test_many_links_to_one_folder_are_walked_once(tmp_path: Path) -> None:
    """Doubling links, level over level, would otherwise be 2^30 folders."""
    for level in range(30):
        folder = tmp_path / f"l{level}"
        folder.mkdir()
        for name in "xy":
            (folder / name).symlink_to(f"../l{level + 1}")
    (tmp_path / "l30").mkdir()
    (tmp_path / "l30" / "f").write_text("x")
    assert len(listing(tmp_path / "l0", tmp_path)) == 1


def test_a_pipe_is_named_and_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(TaskError, match="neither a file nor a folder"):
        listing(tmp_path, tmp_path)


@pytest.mark.parametrize("where", ["tests/data", "solution/data"])
def test_loading_refuses_links_out_of_what_is_copied(make_task, where: str) -> None:
    folder = make_task()
    (folder / where).symlink_to("/etc/passwd")
    with pytest.raises(TaskError, match="leads out of the task folder"):
        load_task(folder)


def test_links_in_the_build_context_are_data(make_task) -> None:
    """They are copied as links into the image and never followed on the host."""
    folder = make_task()
    (folder / "environment" / "python").symlink_to("/usr/bin/python3")
    assert load_task(folder).environment.context == folder / "environment"


@pytest.mark.parametrize("file", ["instruction.md", "task.toml", "environment/Dockerfile"])
def test_a_file_we_read_ourselves_must_not_be_a_link_out(make_task, file: str, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("[agent]\n")
    folder = make_task(files={file: None})
    (folder / file).parent.mkdir(exist_ok=True)
    (folder / file).symlink_to(tmp_path / "secret")
    with pytest.raises(TaskError, match="leads out of the task folder"):
        load_task(folder)


def test_os_errors_are_named_as_what_they_are() -> None:
    gone = os_problem(FileNotFoundError(2, "No such file", "/t/x"), Path("/t"))
    assert str(gone) == "/t/x: is gone: the task folder changed while it was read."
    locked = os_problem(PermissionError(13, "Permission denied", "/t/x"), Path("/t"))
    assert str(locked) == "/t/x: may not be read by this user. Change its permissions."
    assert (gone.details["code"], locked.details["code"]) == ("vanished", "unreadable")
