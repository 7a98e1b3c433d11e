"""Copying and deleting trees that boxes made."""

from __future__ import annotations

import os
import resource
from pathlib import Path

import pytest

from benchflow_sandbox_local.helper import tree


def nest(folder: Path, depth: int) -> None:
    before = os.getcwd()
    try:
        os.chdir(folder)
        for _ in range(depth):
            os.mkdir("d")
            os.chdir("d")
        Path("bottom").write_text("reached")
    finally:
        os.chdir(before)


@pytest.fixture
def few_descriptors() -> object:
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (512, limits[1]))
    yield None
    resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def test_depth_does_not_stop_removal(tmp_path: Path, few_descriptors: object) -> None:
    (tmp_path / "top/wide").mkdir(parents=True)
    nest(tmp_path / "top", 3000)
    nest(tmp_path / "top/wide", 700)
    tree.remove(str(tmp_path / "top"))
    assert list(tmp_path.iterdir()) == []


def test_modes_and_links_do_not_stop_removal(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_text("x")
    top = tmp_path / "top"
    (top / "locked/inner").mkdir(parents=True)
    (top / "link").symlink_to(outside)
    (top / "locked/inner").chmod(0)
    (top / "locked").chmod(0o500)
    os.mkfifo(top / "pipe")
    tree.remove(str(top))
    tree.remove(str(top))
    assert [path.name for path in tmp_path.iterdir()] == ["outside"] and (outside / "kept").exists()


def test_a_clone_shares_files_and_a_copy_does_not(tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "sub").mkdir(parents=True)
    (source / "sub").chmod(0o750)
    (source / "a").write_text("a")
    os.link(source / "a", source / "b")
    (source / "c").write_text("c")
    (source / "link").symlink_to("/no/where")
    os.setxattr(source / "sub", "user.overlay.opaque", b"y")
    assert tree.copy(str(source), str(tmp_path / "copy")) == 2
    tree.clone(str(source), str(tmp_path / "clone"))
    for made in (tmp_path / "copy", tmp_path / "clone"):
        assert sorted(path.name for path in made.iterdir()) == ["a", "b", "c", "link", "sub"]
        assert (made / "sub").stat().st_mode & 0o777 == 0o750 and tree.is_opaque(str(made / "sub"))
        assert os.readlink(made / "link") == "/no/where"
        assert (made / "a").samefile(made / "b") and (made / "a").stat().st_nlink == 2, "as many names as before"
    assert (tmp_path / "clone/c").samefile(source / "c") and not (tmp_path / "copy/c").samefile(source / "c")
