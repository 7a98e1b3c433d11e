"""Reading many rollouts: quick when nothing changed, and right whatever changed."""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path

import pytest
from benchflow_command_results import index
from benchflow_command_results.index import find_jobs, read_rows
from benchflow_command_results.jobs import find_folder, finished_rollouts, stored_jobs

from benchflow_core.evaluation.stored import StoredFiles

FILES = StoredFiles()


@pytest.fixture
def job(tmp_path: Path) -> Path:
    root = tmp_path / "jobs" / "j"
    for n in range(4):
        write(root / f"t{n}__{n:08x}", task=f"t{n}", reward=float(n % 2))
    write(root / "attempts" / "t0__00000000.1", task="t0", reward=1.0)
    (root / "half").mkdir()
    (root / "half" / "config.json").write_text("{}")
    return root


def write(folder: Path, *, task: str, reward: float) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    data = {"task_name": task, "rollout_name": folder.name, "rewards": {"reward": reward}, "agent": "a"}
    (folder / "result.json").write_text(json.dumps(data))


def rewards(job: Path, cache: Path | None) -> dict[str, float]:
    (found,) = find_jobs(job)
    return {row["rollout_name"]: row["rewards"]["reward"] for row in read_rows(FILES, found, cache)}


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the files had been written a while ago: then the index may remember them."""
    monkeypatch.setattr(index, "_SETTLED", -1)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Which results were read from their files."""
    seen: list[str] = []
    real = StoredFiles.read_result

    def read(self: StoredFiles, folder: Path) -> dict | None:
        seen.append(folder.name)
        return real(self, folder)

    monkeypatch.setattr(StoredFiles, "read_result", read)
    return seen


def test_attempts_and_unfinished_rollouts_do_not_count(job):
    (found,) = find_jobs(job)
    assert sorted(found.rollouts) == [f"t{n}__{n:08x}" for n in range(4)]
    assert found.unfinished == ["half"]
    assert len(finished_rollouts(job)) == 4
    assert [j.planned for j in stored_jobs(FILES, job, cached=False)] == [5]


def test_nothing_is_read_twice(job, tmp_path, settled, reads):
    first = rewards(job, tmp_path / "cache")
    assert len(reads) == 4
    assert rewards(job, tmp_path / "cache") == first
    assert len(reads) == 4
    assert rewards(job, None) == first and len(reads) == 8


def test_every_change_is_noticed(job, tmp_path, settled, reads):
    cache = tmp_path / "cache"
    rewards(job, cache)
    reads.clear()
    before = (job / "t0__00000000" / "result.json").stat()
    write(job / "t0__00000000", task="t0", reward=1.0)  # of the same size, in place
    os.utime(job / "t0__00000000" / "result.json", ns=(before.st_atime_ns, before.st_mtime_ns))  # and backdated
    shutil.rmtree(job / "t1__00000001")
    write(job / "new__0", task="new", reward=0.0)
    assert rewards(job, cache) == {"t0__00000000": 1.0, "t2__00000002": 0.0, "t3__00000003": 1.0, "new__0": 0.0}
    assert sorted(reads) == ["new__0", "t0__00000000"]
    shutil.copytree(job, tmp_path / "copy")
    assert rewards(tmp_path / "copy", cache) == rewards(job, cache)


def test_a_file_that_may_still_change_within_the_same_tick_is_not_remembered(job, tmp_path, reads):
    rewards(job, tmp_path / "cache")
    rewards(job, tmp_path / "cache")
    assert len(reads) == 8, "all were written just now"


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", '{"version": 1}', "nonsense", '{"version":1,"folder":"/","keys":[],"rows":[[1]]}']
)
def test_a_broken_index_is_only_slower(job, tmp_path, settled, content):
    cache = tmp_path / "cache"
    expected = rewards(job, cache)
    (file,) = (cache / "index").iterdir()
    file.write_text(content)
    assert rewards(job, cache) == expected
    file.unlink()
    file.mkdir()
    assert rewards(job, cache) == expected


def test_an_index_that_cannot_be_written_is_done_without(job, tmp_path):
    (tmp_path / "file").write_text("")
    assert len(rewards(job, tmp_path / "file" / "cache")) == 4


def test_a_result_that_cannot_be_read_is_unscored_and_says_so(job, tmp_path, settled):
    (job / "t0__00000000" / "result.json").write_text('{"task_name": "t0", ')
    for _ in range(2):
        (found,) = find_jobs(job)
        (row,) = [row for row in read_rows(FILES, found, tmp_path / "cache") if row["rollout_name"] == "t0__00000000"]
        assert row["rewards"] is None and row["error_info"]["code"] == "unreadable_result" and row["task_name"] == "t0"


@pytest.mark.parametrize(
    "wrong",
    [
        '"rewards": [1]',
        '"rewards": {"reward": NaN}',
        '"rewards": {"reward": "1"}',
        '"plugins": [1]',
        '"error_info": "x"',
    ],
)
def test_a_result_of_another_shape_is_unscored_and_harms_no_other(job, wrong):
    (job / "t0__00000000" / "result.json").write_text('{"task_name": "t0", ' + wrong + "}")
    (found,) = stored_jobs(FILES, job, cached=False)
    assert [row["rewards"] is None for row in found.rows] == [True, False, False, False]
    assert "published shape" in found.rows[0]["error"]


def test_results_of_others_are_left_alone(job, tmp_path):
    (job / "theirs").mkdir()
    (job / "theirs" / "result.json").write_text('{"n_total_trials": 3}')
    assert len(rewards(job, None)) == 4


def test_nested_jobs_are_found_and_links_are_not_followed(tmp_path):
    write(tmp_path / "jobs/alias/trial-01/t__0", task="t", reward=1.0)
    (tmp_path / "jobs/loop").symlink_to(tmp_path / "jobs")
    assert [job.path.name for job in stored_jobs(FILES, tmp_path / "jobs", cached=False)] == ["trial-01"]


def test_folders_by_path_by_name_and_the_newest(tmp_path):
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
    then = time.time() - 100
    os.utime(tmp_path / "old", (then, then))
    assert find_folder("old", tmp_path) == tmp_path / "old"
    assert find_folder(str(tmp_path / "new")) == tmp_path / "new"
    assert find_folder("latest", tmp_path) == tmp_path / "new"
    with pytest.raises(Exception, match="Did you mean"):
        find_folder("odl", tmp_path)
