"""Shared by all tests of the core: `bench` in an environment that holds the core and chosen fake distributions only."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import subprocess
import sys
import venv
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
FAKES = Path(__file__).parent / "data" / "dists"


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
    for name in ("click", "pluggy", "packaging", "yaml", "_yaml"):
        spec = find_spec(name)
        assert spec is not None and spec.origin is not None, name
        folder = Path(spec.origin).parent
        for path in (folder, *folder.parent.glob(f"{name}-*.dist-info")):
            (site / path.name).symlink_to(path)
    return FakeBench(base / "venv" / "bin" / Path(sys.executable).name, site)


@pytest.fixture(autouse=True)
def no_engine_unless_asked_for(request: pytest.FixtureRequest) -> Iterator[None]:
    """Where a Docker engine answers it would be every test's default: only tests marked `docker` see it."""
    with pytest.MonkeyPatch.context() as patch:
        if request.node.get_closest_marker("docker") is None:
            patch.setenv("DOCKER_HOST", "unix:///nowhere/of-the-tests.sock")
        yield
