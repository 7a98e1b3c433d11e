"""Every package builds by itself, and its wheel holds what it should and nothing else."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tomllib
import zipfile
from email.parser import HeaderParser
from pathlib import Path

import pytest

pytestmark = pytest.mark.xdist_group("packaging")  # the wheels are built once
ROOT = Path(__file__).parents[1]
PROJECTS = [ROOT, ROOT / "bundle", *sorted(p.parent for p in ROOT.glob("plugins/*/*/pyproject.toml"))]


def project_of(folder: Path) -> dict:
    return tomllib.loads((folder / "pyproject.toml").read_text())["project"]


@pytest.fixture(scope="module")
def wheels(tmp_path_factory) -> dict[str, Path]:
    out = tmp_path_factory.mktemp("dist")
    source = tmp_path_factory.mktemp("source") / "repo"
    ignore = shutil.ignore_patterns(".venv", ".git", "__pycache__", "jobs", "dist", "site", ".*_cache")
    shutil.copytree(ROOT, source, ignore=ignore, symlinks=True)
    # One environment to build in for all of them: this one, which has the build backend.
    command = [ROOT / ".venv/bin/uv", "build", "--all-packages", "--wheel", "--no-build-isolation", "-q", "-o", out]
    subprocess.run(command, cwd=source, env={**os.environ, "VIRTUAL_ENV": str(ROOT / ".venv")}, check=True)
    found = {w.name.split("-")[0].replace("_", "-"): w for w in out.glob("*.whl")}
    assert sorted(found) == sorted(project_of(p)["name"] for p in PROJECTS)
    return found


@pytest.mark.parametrize("folder", PROJECTS, ids=lambda p: p.relative_to(ROOT).as_posix() or "core")
def test_a_wheel_holds_one_package_its_license_and_its_typing_mark(wheels, folder):
    project = project_of(folder)
    module = "benchflow" if project["name"] == "benchflow" else project["name"].replace("-", "_")
    with zipfile.ZipFile(wheels[project["name"]]) as wheel:
        names = wheel.namelist()
        tops = {n.split("/")[0] for n in names}
        info = next(t for t in tops if t.endswith(".dist-info"))
        assert tops == {module, info}
        assert f"{module}/py.typed" in names
        assert not [n for n in names if "/tests/" in n or n.endswith((".pyc", ".env"))]
        meta = HeaderParser().parsestr(wheel.read(f"{info}/METADATA").decode())
    assert meta["License-Expression"] == "Apache-2.0"
    assert meta["Requires-Python"] == ">=3.11"
    requires = [r.split(";")[0].strip() for r in meta.get_all("Requires-Dist", [])]
    if any(group.startswith("benchflow.") for group in project.get("entry-points", ())) and folder != ROOT:
        assert any(r.startswith("benchflow-core") and "<0.9" in r for r in requires)
    source = {p.relative_to(folder).as_posix() for p in (folder / module).rglob("*.py")}
    assert source <= set(names), sorted(source - set(names))


@pytest.mark.parametrize("version", ["3.12", "3.13"])
def test_a_newer_python_installs_the_wheels_and_runs_the_main_job(wheels, interpreter, tmp_path, version):
    python = interpreter(version)
    uv, venv, found = ROOT / ".venv/bin/uv", tmp_path / "venv", next(iter(wheels.values())).parent
    subprocess.run([uv, "venv", "-q", "--python", python, venv], check=True)
    install = [uv, "pip", "install", "-q", "--python", venv / "bin/python", "-c", ROOT / "constraints.txt"]
    subprocess.run([*install, "--find-links", found, "--prerelease", "allow", "benchflow"], check=True)
    command = [venv / "bin/bench", "--json", "eval", "create", "-t", ROOT / "examples/tasks/fix-the-script"]
    done = subprocess.run(
        [*command, "-a", "oracle", "--sandbox", "local", "-o", tmp_path / "jobs"],
        env={**os.environ, "BENCHFLOW_CACHE": str(tmp_path / "cache")}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["passed"] == 1


def test_all_packages_carry_one_version():
    from benchflow_core import __version__

    assert {project_of(p).get("version", __version__) for p in PROJECTS} == {__version__}


def test_the_core_depends_on_little():
    allowed = {"click", "packaging", "pluggy", "pydantic", "python-dotenv", "pyyaml", "rich"}
    assert {d.split(">")[0] for d in project_of(ROOT)["dependencies"]} <= allowed


def test_whoever_writes_toml_depends_on_its_writer():
    for folder in PROJECTS:
        module = folder / project_of(folder)["name"].replace("-", "_")
        writes = any("import tomli_w" in path.read_text() for path in module.rglob("*.py"))
        declared = any(d.startswith("tomli-w") for d in project_of(folder)["dependencies"])
        assert writes == declared, folder


def test_no_lock_file_and_no_address_of_a_registry():
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    assert not [f for f in tracked if f.endswith(("uv.lock", "poetry.lock"))]
    for lock in (ROOT / f for f in tracked if f.endswith("package-lock.json")):
        assert "://" not in lock.read_text() and '"resolved"' not in lock.read_text(), lock
    assert "://" not in (ROOT / "constraints.txt").read_text()
