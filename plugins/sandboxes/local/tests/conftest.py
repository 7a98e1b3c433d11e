"""A provider on a cache of its own, and boxes in it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from benchflow_core.contracts import ImageRequest, Sandbox, SandboxContext, SandboxProvider, StartRequest
from benchflow_sandbox_local.plugin import benchflow_sandbox

Open = Callable[..., SandboxProvider]
Start = Callable[..., Awaitable[Sandbox]]


@pytest.fixture(scope="session")
def shared_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What is made once per host is made once for all tests that do not look into the cache."""
    return tmp_path_factory.mktemp("cache")


@pytest_asyncio.fixture
async def open_provider(tmp_path: Path, shared_cache: Path) -> AsyncIterator[Open]:
    """Providers, closed afterwards. Keywords are `--sandbox-option` values."""
    opened: list[SandboxProvider] = []

    def open_(cache: Path | None = None, **options: str) -> SandboxProvider:
        work = tmp_path / f"work{len(opened)}"
        work.mkdir()
        context = SandboxContext(work, cache or shared_cache, env=dict(os.environ), options=options)
        opened.append(benchflow_sandbox().open(context))
        return opened[-1]

    yield open_
    for provider in opened:
        await provider.close()


@pytest.fixture
def provider(open_provider: Open) -> SandboxProvider:
    return open_provider()


@pytest.fixture
def own(open_provider: Open, tmp_path: Path) -> SandboxProvider:
    """A provider on `tmp_path/cache`, which nobody else uses."""
    return open_provider(tmp_path / "cache")


@pytest_asyncio.fixture
async def start(provider: SandboxProvider) -> Start:
    """A box on the host's programs."""

    async def start_(image: Any = None, **changes: Any) -> Sandbox:
        image = image or await provider.prepare(ImageRequest())
        return await provider.start(image, StartRequest(name="test", **changes))

    return start_


@pytest.fixture
def as_user() -> Iterator[Callable[..., subprocess.CompletedProcess[str]]]:
    """Run Python code or a module as a user without any privilege, with a home folder of its own."""
    if os.geteuid() != 0:
        pytest.skip("only root can become another user")
    uid, home = 64321, Path(tempfile.mkdtemp(prefix="benchflow-user-"))  # pytest's own folders are closed to others
    (home / "tmp").mkdir()
    for path in (home, home / "tmp"):
        os.chown(path, uid, uid)
    env = {
        "HOME": str(home), "TMPDIR": str(home / "tmp"), "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8",
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path), "PYTHONDONTWRITEBYTECODE": "1",
    }  # fmt: skip

    def run(*arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [_python_for_others(uid), *arguments], env=env | more, user=uid, group=uid, extra_groups=[], cwd=home,
            capture_output=True, text=True, timeout=280, check=False,
        )  # fmt: skip

    yield run
    shutil.rmtree(home, ignore_errors=True)


def _python_for_others(uid: int) -> str:
    """An interpreter of our version that another user may run."""
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    for path in (sys.executable, os.path.realpath(sys.executable), f"/usr/bin/python{version}"):
        try:
            done = subprocess.run([path, "-c", "pass"], user=uid, group=uid, extra_groups=[], cwd="/", check=False)
        except OSError:
            continue
        if done.returncode == 0:
            return path
    pytest.skip(f"no Python {version} here that other users may run")
