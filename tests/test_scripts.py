"""The scripts that prepare a machine for tests with an engine."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[1] / "scripts"


@pytest.mark.skipif(not shutil.which("dpkg-query"), reason="needs a Debian host")
def test_a_root_file_system_from_this_host_is_whole_and_holds_no_secret_of_it():
    made = subprocess.run([sys.executable, SCRIPTS / "host_rootfs.py", "bash"], capture_output=True, check=True)
    with tarfile.open(fileobj=io.BytesIO(made.stdout)) as tar:
        entries = tar.getmembers()
        names = [entry.name for entry in entries]
        shadow = tar.extractfile("etc/shadow").read()
        status = tar.extractfile("var/lib/dpkg/status").read()
    assert len(names) == len(set(names)), "docker import refuses a path that comes twice"
    assert {"usr/bin/bash", "usr/bin/dpkg", "usr/bin/apt-get", "etc/os-release", "tmp", "root"} <= set(names)
    assert shadow == b"root:*:19000:0:99999:7:::\n"
    assert status.count(b"\nStatus: install ok installed\n") == status.count(b"Package: ")
    assert not [n for n in names if n.startswith(("home/", "root/", "etc/ssh/", "var/log/journal"))]


def test_an_engine_that_somebody_points_at_is_not_started_by_us(tmp_path):
    env = {**os.environ, "DOCKER_HOST": f"unix://{tmp_path}/none.sock"}
    done = subprocess.run([SCRIPTS / "docker_engine.sh"], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 3, done.stderr
    assert f"DOCKER_HOST=unix://{tmp_path}/none.sock" in done.stderr


def test_an_unknown_base_image_is_named_with_those_there_are():
    argv = [sys.executable, SCRIPTS / "base_images.py", "centos:7"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "no recipe for centos:7" in done.stderr and "debian:bookworm-slim" in done.stderr


def test_failed_tests_are_named_as_pytest_takes_them(tmp_path):
    (tmp_path / "test_it.py").write_text(
        "import pytest\n"
        "@pytest.mark.parametrize('a', ['x@1', 'y - z'])\n"
        "@pytest.mark.xdist_group('one-group')\n"
        "def test_bad(a): assert not a\n"
        "def test_good(): pass\n"
    )
    run = [sys.executable, "-m", "pytest", "-q", "-p", "no:asyncio", "-o", "cache_dir=kept"]
    subprocess.run([*run, "-n", "1", "--dist", "loadgroup"], cwd=tmp_path, check=False, capture_output=True)
    script = [sys.executable, SCRIPTS / "failed_tests.py", "kept"]
    listed = subprocess.run([*script, "2"], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    (tmp_path / "again").write_text(listed)
    again = subprocess.run([*run, "@again"], cwd=tmp_path, check=False, capture_output=True, text=True)
    assert "2 failed" in again.stdout and "passed" not in again.stdout
    many = subprocess.run([*script, "1"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (many.returncode, many.stdout) == (1, "") and "2 tests failed" in many.stderr
    none = subprocess.run([*script[:2], "nowhere", "2"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (none.returncode, none.stdout) == (1, "")
