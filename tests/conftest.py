"""Shared by all tests of the core: `bench` in an environment that holds the core and chosen fake distributions only."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import subprocess
import sys
import tomllib
import venv
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
DURATIONS = Path(__file__).parent / "durations.json"
FAKES = Path(__file__).parent / "data" / "dists"
WRITES_BYTE_CODE = not sys.dont_write_bytecode
# Rewriting the assertions of 470 modules takes a third of the time to collect them: pytest may keep what it made.
sys.dont_write_bytecode = False


def pytest_collection_finish() -> None:
    """Give back Python's own setting: tests import modules that they have just written."""
    sys.dont_write_bytecode = not WRITES_BYTE_CODE


def _unit(nodeid: str) -> str:
    """Return what one worker runs in one piece: the group that xdist appends to a test's id, else the test's file."""
    path, _, test = nodeid.partition("::")
    return test.rpartition("@")[2] if "@" in test else path


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Start what takes longest first: a long group that starts last would keep one worker busy alone at the end."""
    known = json.loads(DURATIONS.read_text(encoding="utf-8"))

    def seconds(item: pytest.Item) -> float:
        group = item.get_closest_marker("xdist_group")
        name = (group.args[0] if group.args else group.kwargs["name"]) if group else item.nodeid.partition("::")[0]
        return float(known.get(name, 0))

    items.sort(key=seconds, reverse=True)


class DurationsOfUnits:
    """Add up how long each group and each file took; `BENCHFLOW_WRITE_DURATIONS=1` keeps it for the next runs."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        unit = _unit(report.nodeid)
        self.seconds[unit] = self.seconds.get(unit, 0.0) + report.duration

    def pytest_sessionfinish(self) -> None:
        known = json.loads(DURATIONS.read_text(encoding="utf-8")) if DURATIONS.exists() else {}
        longest = {**known, **{unit: round(seconds) for unit, seconds in self.seconds.items()}}
        kept = {unit: longest[unit] for unit in sorted(longest) if longest[unit] >= 5}
        DURATIONS.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


def pytest_configure(config: pytest.Config) -> None:
    if os.environ.get("BENCHFLOW_WRITE_DURATIONS") and "PYTEST_XDIST_WORKER" not in os.environ:
        config.pluginmanager.register(DurationsOfUnits())


@pytest.fixture(scope="session")
def interpreter() -> Callable[[str], str]:
    """A Python of some version on this machine, wherever a version manager keeps it."""

    def find(version: str) -> str:
        kept = sorted(Path(pwd.getpwuid(os.getuid()).pw_dir).glob(f".pyenv/versions/{version}.*/bin/python3"))
        for found in [*map(str, kept), shutil.which(f"python{version}") or "none"]:
            with suppress(OSError):
                if subprocess.run([found, "-c", ""], capture_output=True, check=False).returncode == 0:
                    return found
        pytest.skip(f"no Python {version} here")

    return find


@dataclass(frozen=True)
class Ran:
    """One finished command."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@dataclass(frozen=True)
class FakeBench:
    """Runs `bench` as a user would, in a process of its own."""

    python: Path
    site: Path
    authoring: str
    """For `fakes`: the real package with the commands for authors."""

    def env(self, fakes: Sequence[str] = (), extra: Mapping[str, str] | None = None) -> dict[str, str]:
        """Of a process that sees the core and these fake distributions."""
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
        path = os.pathsep.join(map(str, [self.site, *(FAKES / name for name in fakes)]))
        return {**kept, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1", **(extra or {})}

    def argv(self, *args: str) -> list[str]:
        """The command line of `bench args`."""
        return [str(self.python), "-m", "benchflow_core.cli.main", *args]

    def __call__(
        self, *args: str, fakes: Sequence[str] = (), env: Mapping[str, str] | None = None, timeout: float = 60
    ) -> Ran:
        done = subprocess.run(
            self.argv(*args),
            env=self.env(fakes, env),
            capture_output=True,
            text=True,
            timeout=timeout,
            cwd=self.site.parent,
        )
        return Ran(done.returncode, done.stdout, done.stderr)


@pytest.fixture(scope="session")
def fake_bench(tmp_path_factory: pytest.TempPathFactory) -> FakeBench:
    """A bare virtual environment, and a folder with the core and what it imports, linked from where we run."""
    base = tmp_path_factory.mktemp("bare")
    venv.create(base / "venv", symlinks=True)
    site = base / "site"
    site.mkdir()
    (site / "benchflow_core").symlink_to(ROOT / "benchflow_core")
    info = site / "benchflow_core-0.8.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: benchflow-core\nVersion: 0.8.0\n")
    for name in ("click", "pluggy", "packaging", "yaml", "_yaml", "dotenv"):
        spec = find_spec(name)
        assert spec is not None and spec.origin is not None, name
        folder = Path(spec.origin).parent
        for path in (folder, *folder.parent.glob(f"{name}-*.dist-info")):
            (site / path.name).symlink_to(path)
    return FakeBench(base / "venv" / "bin" / Path(sys.executable).name, site, str(_authoring(base)))


def _authoring(base: Path) -> Path:
    """The package benchflow-command-authoring as if it were installed in a folder of its own."""
    source, site = ROOT / "plugins/commands/authoring", base / "authoring"
    project = tomllib.loads((source / "pyproject.toml").read_text())["project"]
    info = site / "benchflow_command_authoring-0.8.0.dist-info"
    info.mkdir(parents=True)
    (site / "benchflow_command_authoring").symlink_to(source / "benchflow_command_authoring")
    head = f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: 0.8.0\nSummary: {project['description']}\n"
    (info / "METADATA").write_text(head)
    names = project["entry-points"]["benchflow.commands"].items()
    (info / "entry_points.txt").write_text("\n".join(["[benchflow.commands]", *(f"{n} = {v}" for n, v in names)]))
    return site


@pytest.fixture(autouse=True)
def no_engine_unless_asked_for(request: pytest.FixtureRequest) -> Iterator[None]:
    """Where a Docker engine answers it would be every test's default: only tests marked `docker` see it."""
    with pytest.MonkeyPatch.context() as patch:
        if request.node.get_closest_marker("docker") is None:
            patch.setenv("DOCKER_HOST", "unix:///nowhere/of-the-tests.sock")
        yield


@pytest.fixture(scope="session")
def claws_task() -> Callable[[Path], Path]:
    """The ClawsBench task of the public documents, with the databases that they say are there."""
    scenarios = ROOT / "benchmarks" / "clawsbench" / "tasks" / "meeting-from-email" / "environment"

    def make(folder: Path) -> Path:
        from benchflow_claw_kit.testing import seed_databases

        shutil.copytree(Path(__file__).parent / "data" / "schedule-meeting-from-email", folder)
        seed_databases(folder / "environment", scenarios)
        return folder

    return make
