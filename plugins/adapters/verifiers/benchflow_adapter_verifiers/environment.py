"""Python environments for Verifiers: one for each generation and package, made on demand, outside BenchFlow's own."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchflow_core.contracts import Check
from benchflow_core.errors import ConfigurationError

__all__ = ["GENERATIONS", "HOME_VARIABLE", "WORKER", "VerifiersEnvironment", "check"]

HOME_VARIABLE: Final = "BENCHFLOW_VERIFIERS_HOME"
GENERATIONS: Final = {"0.4": ("verifiers==0.4.0", "benchflow_current"), "0.3": ("verifiers==0.3.1", "benchflow_older")}
"""The generation, the release that plays it, and the module that knows its objects."""
WORKER: Final = Path(__file__).with_name("worker") / "benchflow_worker.py"
_PINS: Final = Path(__file__).with_name("pins")
_MARK: Final = ".benchflow-installed"
_PASSED_ON: Final = ("PATH", "LANG", "LC_ALL", "TZ", "SSL_CERT_FILE", "HF_HOME", "HF_HUB_OFFLINE")


@dataclass(frozen=True)
class VerifiersEnvironment:
    """A generation of Verifiers, with one more package where the environment is one."""

    generation: str
    package: str | None = None
    """What pip installs: a requirement, a wheel or a folder."""
    digest: str = ""
    """Of a package on this disk."""

    @property
    def home(self) -> Path:
        key = hashlib.sha256(repr((self.package, self.digest)).encode()).hexdigest()[:12] if self.package else "plain"
        python = f"py{sys.version_info.major}.{sys.version_info.minor}"
        pins = hashlib.sha256(self._pins.read_bytes()).hexdigest()[:8]
        return _root() / f"{self.generation}-{pins}-{python}-{key}"

    @property
    def python(self) -> Path:
        return self.home / "bin" / "python"

    @property
    def _pins(self) -> Path:
        return _PINS / f"{self.generation}.txt"

    def ensure(self) -> Path:
        """The interpreter; two processes make the environment once."""
        if not (self.home / _MARK).exists():
            self.home.parent.mkdir(parents=True, exist_ok=True)
            with (self.home.parent / f".{self.home.name}.lock").open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                if not (self.home / _MARK).exists():
                    self._make()
        return self.python

    def has_taskset(self, module: str) -> bool:
        """Verifiers brings some of its own."""
        return any(self.home.glob(f"lib/python*/site-packages/verifiers/v1/tasksets/{module}"))

    def process_env(self, allowed: tuple[str, ...] = (), modules: Path | None = None) -> dict[str, str]:
        """Nothing of the user's but what was named: no keys, no Python settings, a home of its own."""
        home = _root() / "home"
        home.mkdir(parents=True, exist_ok=True)
        env = {name: os.environ[name] for name in (*_PASSED_ON, *allowed) if name in os.environ}
        env |= {"HOME": str(home), "PYTHONUNBUFFERED": "1"}
        return env | ({"PYTHONPATH": str(modules)} if modules else {})

    def _make(self) -> None:
        shutil.rmtree(self.home, ignore_errors=True)
        for argv in self._commands():
            done = subprocess.run(argv, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
            if done.returncode != 0:
                shutil.rmtree(self.home, ignore_errors=True)
                raise ConfigurationError(
                    f"{self.package or GENERATIONS[self.generation][0]} cannot be installed beside "
                    f"{GENERATIONS[self.generation][0]}: {_reason(done.stderr)}",
                    remedy="Where a package index can be reached: python -m benchflow_adapter_verifiers install",
                )
        (self.home / _MARK).touch()

    def _commands(self) -> list[list[str]]:
        """With uv where there is one: seconds instead of minutes. Pinned where nothing else has a say."""
        what = [GENERATIONS[self.generation][0]]
        what += [self.package] if self.package else ["-c", str(self._pins)]
        beside = Path(sys.executable).with_name("uv")
        uv = str(beside) if beside.exists() else shutil.which("uv")
        if uv:
            install = [uv, "pip", "install", "--quiet", "--python", str(self.python), *what]
            return [[uv, "venv", "--quiet", "--python", sys.executable, str(self.home)], install]
        pip = [str(self.python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *what]
        return [[sys.executable, "-m", "venv", str(self.home)], pip]


def check() -> list[Check]:
    missing = [generation for generation in GENERATIONS if not (VerifiersEnvironment(generation).home / _MARK).exists()]
    if not missing:
        return [Check("Verifiers", "ok", f"both generations in {_root()}")]
    advice = "python -m benchflow_adapter_verifiers install"
    return [Check("Verifiers", "warn", f"{' and '.join(missing)} not installed yet; first use does it", advice)]


def _root() -> Path:
    if own := os.environ.get(HOME_VARIABLE):
        return Path(own).expanduser().absolute()
    cache = os.environ.get("BENCHFLOW_CACHE")
    if not cache:
        cache = str(Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "benchflow")
    return Path(cache).absolute() / "verifiers"


def _reason(text: str) -> str:
    """The sentence of the resolver's that says what clashes."""
    lines = [line.strip(" ╰─▶×│") for line in text.splitlines() if line.strip(" ╰─▶×│")]
    return " ".join(lines)[:400] or "no reason given"
