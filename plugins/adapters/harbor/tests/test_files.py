"""Files of a task are read from inside its folder only, whatever a name or a link says."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchflow_adapter_harbor.files import existing_dir, existing_file, inside

from benchflow_core.errors import TaskError


@pytest.mark.parametrize("find", [existing_file, existing_dir, inside])
@pytest.mark.parametrize("name", ["../other", "sub/../../other", "../task-sibling", "link"])
def test_names_and_links_that_lead_out_are_refused(tmp_path: Path, find, name: str) -> None:
    root = tmp_path / "task"
    (root / "sub").mkdir(parents=True)
    for outside in ("other", "task-sibling"):
        if find is existing_file:
            (tmp_path / outside).write_text("secret")
        else:
            (tmp_path / outside).mkdir()
    (root / "link").symlink_to("../other")
    with pytest.raises(TaskError, match="leads out of the task folder"):
        find(root / name, root)


def test_what_comes_back_into_the_task_is_found(tmp_path: Path) -> None:
    root = tmp_path / "task"
    (root / "sub").mkdir(parents=True)
    (root / "file").write_text("x")
    assert existing_file(root / "sub/../file", root) is not None
