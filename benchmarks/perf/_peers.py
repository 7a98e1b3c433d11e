"""Harbor and BenchFlow from their own packages, each in an environment of its own, on the same engine and task.

Both drive `docker compose`; where the machine has none, Compose v2 and buildx come from Debian's next release.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

CACHE = Path(os.environ.get("BENCHFLOW_PERF_CACHE", Path.home() / ".cache" / "benchflow-perf"))
NEXT_DEBIAN = "trixie"
PYTHON = "3.12"


def _interpreter() -> str:
    """Where the machine has one; else uv is asked to get it."""
    found = sorted(Path.home().glob(f".pyenv/versions/{PYTHON}.*/bin/python"))
    return str(found[-1]) if found else PYTHON


def environment(package: str) -> Path:
    """The `bin` folder of a virtual environment that holds the package."""
    folder = CACHE / package
    if not (folder / "ready").exists():
        uv = Path(sys.executable).with_name("uv")
        python = str(folder / "bin" / "python")
        subprocess.run([uv, "venv", "--quiet", "--clear", "--python", _interpreter(), folder], check=True)
        subprocess.run([uv, "pip", "install", "--quiet", "--python", python, package], check=True)
        (folder / "ready").touch()
    return folder / "bin"


def docker_config() -> Path:
    """A client configuration whose plugins hold `compose` and `buildx`."""
    folder = CACHE / "docker"
    plugins = folder / "cli-plugins"
    if not (plugins / "docker-compose").exists():
        lists, packages = CACHE / "apt", CACHE / "debs"
        for path in (lists / "lists/partial", lists / "cache/archives/partial", packages, plugins):
            path.mkdir(parents=True, exist_ok=True)
        sources = [Path("/etc/apt/sources.list"), *Path("/etc/apt/sources.list.d").glob("*")]
        text = "\n".join(path.read_text() for path in sources if path.is_file())
        mirror = re.findall(r"^(?:URIs:|deb(?: \[.*?\])?)\s+(\S+/debian)/?\s", text, re.MULTILINE)[0]
        keyring = "/usr/share/keyrings/debian-archive-keyring.gpg"
        (lists / "sources.list").write_text(f"deb [signed-by={keyring}] {mirror} {NEXT_DEBIAN} main\n")
        apt = ["apt-get", "-qq", "-o", f"Dir::Etc::sourcelist={lists}/sources.list", "-o", "Dir::Etc::sourceparts=-"]
        apt += [
            "-o",
            f"Dir::State::lists={lists}/lists",
            "-o",
            f"Dir::Cache={lists}/cache",
            "-o",
            "APT::Sandbox::User=root",
        ]
        subprocess.run([*apt, "update"], check=True, capture_output=True)
        subprocess.run(
            [*apt, "download", "docker-compose", "docker-buildx"], cwd=packages, check=True, capture_output=True
        )
        for package in packages.glob("*.deb"):
            subprocess.run(["dpkg", "-x", package, packages / "root"], check=True)
        for plugin in (packages / "root/usr/libexec/docker/cli-plugins").iterdir():
            shutil.copy(plugin, plugins)
    return folder


def copies(work: Path, task: Path, count: int) -> Path:
    """The task, several times, under different names."""
    folder = work / f"{task.name}-{count}"
    for number in range(count):
        if not (folder / f"{task.name}-{number}").exists():
            shutil.copytree(task, folder / f"{task.name}-{number}")
    return folder


def _run(work: Path, name: str, argv: list[str | Path]) -> float:
    env = {**os.environ, "DOCKER_CONFIG": str(docker_config()), "HOME": str(work / f"home-{name}")}
    Path(env["HOME"]).mkdir(exist_ok=True)
    start = time.perf_counter()
    done = subprocess.run(argv, cwd=work, env=env, capture_output=True, text=True, timeout=1800, check=False)
    took = time.perf_counter() - start
    if done.returncode:
        raise RuntimeError(f"{name} ended with {done.returncode}: {(done.stdout + done.stderr)[-1500:]}")
    return took


def _scored(jobs: Path, count: int, name: str) -> None:
    rewards = [path for path in jobs.glob("**/verifier/reward.txt") if path.read_text().strip() in ("1", "1.0")]
    if len(rewards) != count:
        raise RuntimeError(f"{name} scored {len(rewards)} of {count}")


def harbor(work: Path, task: Path, count: int, concurrency: int) -> float:
    jobs = work / f"harbor-{count}"
    argv = [environment("harbor") / "harbor", "run", "-p", copies(work, task, count), "-a", "oracle", "-e", "docker"]
    took = _run(work, "harbor", [*argv, "-n", str(concurrency), "-o", jobs, "-y", "-q"])
    _scored(jobs, count, "harbor")
    return took


def benchflow(work: Path, task: Path, count: int, concurrency: int) -> float:
    jobs = work / f"benchflow-{count}"
    argv = [environment("benchflow") / "bench", "eval", "run", "--tasks-dir", copies(work, task, count)]
    argv += ["--agent", "oracle", "--sandbox", "docker", "--concurrency", str(concurrency), "--jobs-dir", jobs]
    took = _run(work, "benchflow", argv)
    _scored(jobs, count, "benchflow")
    return took


PEERS: list[tuple[str, Callable[[Path, Path, int, int], float], float]] = [
    ("Harbor", harbor, 7.0),
    ("BenchFlow", benchflow, 10.0),
]
"""Name, how it runs, and how many times faster than it we are to be."""
