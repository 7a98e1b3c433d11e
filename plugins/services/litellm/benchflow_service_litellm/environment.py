"""LiteLLM's own Python environment: pinned with hashes, made once, outside the one BenchFlow runs in."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchflow_core.contracts import Availability, Check
from benchflow_core.errors import ConfigurationError

__all__ = ["COMMAND", "HOME_VARIABLE", "LiteLLMEnvironment"]

HOME_VARIABLE: Final = "BENCHFLOW_LITELLM_HOME"
COMMAND: Final = "python -m benchflow_service_litellm install"
_REQUIREMENTS: Final = Path(__file__).with_name("requirements.txt")
_MARK: Final = ".benchflow-installed"
_SIZE: Final = "730 MB"


@dataclass(frozen=True)
class LiteLLMEnvironment:
    """Where it is. `own`: the user named the folder."""

    home: Path
    own: bool = False

    @classmethod
    def of(cls, env: Mapping[str, str]) -> LiteLLMEnvironment:
        """`BENCHFLOW_LITELLM_HOME`, or a folder in the cache whose name changes with the pins."""
        if env.get(HOME_VARIABLE):
            return cls(Path(env[HOME_VARIABLE]).expanduser().absolute(), own=True)
        cache = env.get("BENCHFLOW_CACHE")
        if not cache:
            cache = str(Path(env.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "benchflow")
        python = f"py{sys.version_info.major}.{sys.version_info.minor}"
        return cls(Path(cache).absolute() / "litellm" / f"{version()}-{_pins()[:8]}-{python}")

    @classmethod
    def of_process(cls) -> LiteLLMEnvironment:
        return cls.of(os.environ)

    @property
    def python(self) -> Path:
        return self.home / "bin" / "python"

    @property
    def installed(self) -> bool:
        """Complete, and by our pins; one that the user named need only be there."""
        if self.own and not (self.home / _MARK).exists():
            return (self.home / "bin" / "litellm").exists()
        with suppress(OSError):
            return (self.home / _MARK).read_text() == _pins()
        return False

    def available(self) -> Availability:
        if self.installed:
            return Availability(True, f"LiteLLM in {self.home}")
        if self.own:
            return Availability(False, f"{HOME_VARIABLE} names no LiteLLM: {self.home}.", f"Run: {COMMAND}")
        return Availability(True, f"LiteLLM {version()} is installed on first use ({_SIZE}, once)")

    def check(self) -> Check:
        if self.installed:
            return Check("LiteLLM", "ok", f"{version()} in {self.home}")
        if self.own:
            return Check("LiteLLM", "fail", f"{HOME_VARIABLE} names no LiteLLM: {self.home}", f"Run: {COMMAND}")
        return Check("LiteLLM", "warn", f"{version()} is not installed yet; first use does it ({_SIZE})", COMMAND)

    def ensure(self, say: Callable[[str], None] = lambda line: None) -> Path:
        """The interpreter; the environment is made if it is not there. Two processes make it once."""
        if not self.installed:
            with self._alone():
                if not self.installed:
                    say(f"installing LiteLLM {version()} into {self.home} ({_SIZE}, once)")
                    self._make()
        return self.python

    @contextmanager
    def _alone(self) -> Iterator[None]:
        self.home.parent.mkdir(parents=True, exist_ok=True)
        with (self.home.parent / f".{self.home.name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _make(self) -> None:
        if self.home.exists() and any(self.home.iterdir()):
            if self.own and not (self.home / "pyvenv.cfg").exists():
                raise ConfigurationError(f"{HOME_VARIABLE}: {self.home} is not empty and no Python environment.")
            shutil.rmtree(self.home)
        for argv in _commands(self.home):
            done = subprocess.run(argv, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
            if done.returncode != 0:
                shutil.rmtree(self.home, ignore_errors=True)
                last = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
                raise ConfigurationError(
                    f"LiteLLM {version()} could not be installed: {last}",
                    remedy=f"Where a package index can be reached, run: {COMMAND}",
                )
        (self.home / _MARK).write_text(_pins())


def _commands(home: Path) -> list[list[str]]:
    """With uv where there is one: seconds instead of minutes."""
    beside = Path(sys.executable).with_name("uv")
    uv = str(beside) if beside.exists() else shutil.which("uv")
    python, pins = str(home / "bin" / "python"), str(_REQUIREMENTS)
    if uv:
        return [
            [uv, "venv", "--quiet", "--python", sys.executable, str(home)],
            [uv, "pip", "install", "--quiet", "--python", python, "--require-hashes", "-r", pins],
        ]
    return [
        [sys.executable, "-m", "venv", str(home)],
        [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--require-hashes", "-r", pins],
    ]


def version() -> str:
    """Of LiteLLM, as pinned."""
    return next(line.split("==")[1].split()[0] for line in _lines() if line.startswith("litellm=="))


def _lines() -> list[str]:
    return _REQUIREMENTS.read_text("utf-8").splitlines()


def _pins() -> str:
    return hashlib.sha256(_REQUIREMENTS.read_bytes()).hexdigest()
