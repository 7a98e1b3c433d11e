"""What `bench plugins new` makes builds, installs, is listed, and passes its own tests: in a venv of its own, from wheels."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from benchflow_command_authoring.new import create

from benchflow_core.hookspecs import GROUPS

ROOT = Path(__file__).parents[4]
UV = Path(sys.executable).with_name("uv")
TESTED = ("agent", "sandbox", "adapter", "verifier")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.xdist_group("scaffold"),  # one environment for all packages
    pytest.mark.skipif(not UV.exists(), reason="needs uv beside this Python: make dev"),
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the sandboxes need Linux"),
]


def run(*argv: str | Path, cwd: Path, timeout: float = 240) -> subprocess.CompletedProcess[str]:
    words = [str(word) for word in argv]
    return subprocess.run(words, cwd=cwd, capture_output=True, text=True, timeout=timeout, check=False)


def uv(*args: str | Path, cwd: Path) -> None:
    """From the cache where it will do, else from the index."""
    done = run(UV, *args, "--offline", "--quiet", cwd=cwd)
    if done.returncode != 0:
        done = run(UV, *args, "--quiet", cwd=cwd)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """A fresh venv with the core, what its suites run on and one generated plugin of each kind, all as wheels."""
    folder = tmp_path_factory.mktemp("site")
    wheels = folder / "wheels"
    libraries = ("libraries/acp", "libraries/boxkit", "libraries/wires", "executors/processes")
    authors = ("commands/authoring", "testing/kit")
    running = ("sandboxes/local", "adapters/harbor", "agents/oracle", "drivers/scenes", "verifiers/script")
    needed = (*libraries, *authors, *running)
    for source in (ROOT, *(ROOT / "plugins" / path for path in needed)):
        uv("build", "--wheel", "--no-sources", "--out-dir", wheels, source, cwd=folder)
    for kind in GROUPS:
        package, _ = create(kind, "fresh", folder / "packages", "Ada Lovelace")
        if kind in TESTED:
            uv("build", "--wheel", "--out-dir", wheels, package, cwd=folder)
    others = [folder / "packages" / f"benchflow-{kind}-fresh" for kind in GROUPS if kind not in TESTED]
    uv("venv", "--python", sys.executable, folder / "venv", cwd=folder)
    install = ["pip", "install", "--compile-bytecode", "-c", ROOT / "constraints.txt"]
    install += ["--python", folder / "venv" / "bin" / "python"]
    tools = ["pytest", "pytest-asyncio", "pytest-xdist"]
    uv(*install, *tools, *sorted(wheels.glob("*.whl")), *others, cwd=folder)
    return folder


@pytest.fixture(scope="module")
def listed(site) -> dict[str, dict[str, str]]:
    done = run(site / "venv" / "bin" / "bench", "--json", "plugins", "list", cwd=site)
    assert done.returncode == 0, done.stderr
    return {row["kind"]: row for row in json.loads(done.stdout) if row["name"] == "fresh"}


def test_wheels_hold_what_they_should(site):
    for kind in TESTED:
        (wheel,) = (site / "wheels").glob(f"benchflow_{kind}_fresh-*.whl")
        names = zipfile.ZipFile(wheel).namelist()
        module = f"benchflow_{kind}_fresh"
        assert {f"{module}/__init__.py", f"{module}/plugin.py", f"{module}/py.typed"} <= set(names)
        assert any(name.endswith("licenses/LICENSE") for name in names)
        assert not any(name.startswith("tests") for name in names)


def test_the_wheel_carries_the_templates(site):
    (wheel,) = (site / "wheels").glob("benchflow_command_authoring-*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    package = ROOT / "plugins" / "commands" / "authoring"
    templates = package / "benchflow_command_authoring" / "templates"
    wanted = {str(p.relative_to(package)) for p in templates.rglob("*") if p.is_file() and "__pycache__" not in p.parts}
    assert wanted <= names, wanted - names


@pytest.mark.parametrize("kind", GROUPS)
def test_plugin_is_listed_as_active(listed, kind):
    assert listed[kind]["status"] == "active", listed[kind]
    assert listed[kind]["distribution"] == f"benchflow-{kind}-fresh"


def test_doctor_finds_nothing_wrong(site):
    done = run(site / "venv" / "bin" / "bench", "plugins", "doctor", cwd=site)
    lines = [line for line in done.stdout.splitlines() if "fresh" in line]
    assert lines and not [line for line in lines if "fail" in line], done.stdout


def test_generated_command_runs(site):
    done = run(site / "venv" / "bin" / "bench", "fresh", site, cwd=site)
    assert done.returncode == 0, done.stderr


def test_new_works_from_the_wheel(site):
    done = run(site / "venv" / "bin" / "bench", "plugins", "new", "agent", "again", "--dir", site / "again", cwd=site)
    assert done.returncode == 0, done.stderr
    assert (site / "again" / "benchflow-agent-again" / "tests" / "test_agent.py").is_file()


SUITES = (*TESTED, "other")


@pytest.fixture(scope="module")
def runs(site):
    """The packages' own tests, all at once: they mostly wait. The small kinds share a run."""
    python = site / "venv" / "bin" / "python"
    others = [f"benchflow-{kind}-fresh/tests" for kind in GROUPS if kind not in TESTED]
    options = {
        **{kind: (f"benchflow-{kind}-fresh", ()) for kind in TESTED},
        "sandbox": ("benchflow-sandbox-fresh", ("-n", "4")),
        "other": ("", ("--import-mode=importlib", "-p", "no:cacheprovider", *others)),
    }
    started = {}
    for name, (folder, args) in options.items():
        argv = [python, "-m", "pytest", "-q", *args]
        (site / "tmp" / name).mkdir(parents=True)
        env = {**os.environ, "TMPDIR": str(site / "tmp" / name)}
        log = open(site / f"{name}.log", "w+")
        where = site / "packages" / folder
        started[name] = log, subprocess.Popen(argv, cwd=where, env=env, stdout=log, stderr=subprocess.STDOUT)
    yield started
    for log, process in started.values():
        process.kill()
        process.wait()
        log.close()


@pytest.mark.parametrize("name", SUITES)
def test_own_tests_pass(runs, name):
    log, process = runs[name]
    code = process.wait(timeout=280)
    log.seek(0)
    text = log.read()
    assert code == 0, text[-6000:]
    assert " passed" in text
