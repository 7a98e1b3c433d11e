"""Running git: nothing of the repository's and nothing interactive may run or be asked for."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchflow_core.contracts import Check
from benchflow_core.errors import ConfigurationError, InfrastructureError

__all__ = ["GitFailed", "check_git", "git", "git_argv", "git_env"]

_TRANSPORTS = ("https", "http", "ssh", "git", "file")
_SETTINGS = {
    "core.hooksPath": os.devnull,
    "core.fsmonitor": "false",
    "core.askPass": "",
    "credential.interactive": "never",
    "fetch.recurseSubmodules": "false",
    "submodule.recurse": "false",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "http.lowSpeedLimit": "1000",
    "http.lowSpeedTime": "60",
    # Whatever a redirect or an alias of the user's leads to: never `ext::` or another helper that runs commands.
    "protocol.allow": "never",
    **{f"protocol.{name}.allow": "always" for name in _TRANSPORTS},
}
_FOREIGN = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES")
"""Set where `bench` runs inside a hook or an alias of git: they would turn our commands on another repository."""


class GitFailed(InfrastructureError):
    """git ended with an error; `details` has what it said."""


def git_argv(*args: str) -> list[str]:
    program = shutil.which("git")
    if program is None:
        raise ConfigurationError("git is not installed.", remedy="Install it, or use a local folder with --tasks-dir.")
    settings = [part for key, value in _SETTINGS.items() for part in ("-c", f"{key}={value}")]
    return [program, *settings, *args]


def git_env(more: Mapping[str, str] | None = None) -> dict[str, str]:
    env = {name: value for name, value in os.environ.items() if name not in _FOREIGN}
    env |= {"GIT_TERMINAL_PROMPT": "0", "GIT_NO_LAZY_FETCH": "1", "LC_ALL": "C"}
    env.setdefault("GIT_SSH_COMMAND", "ssh -o BatchMode=yes")
    return {**env, **(more or {})}


def git(*args: str, cwd: Path | None = None, env: Mapping[str, str] | None = None) -> str:
    """What git printed. Raises `GitFailed` with the last line that it said."""
    done = subprocess.run(
        git_argv(*args), cwd=cwd, env=git_env(env), stdin=subprocess.DEVNULL, capture_output=True, check=False
    )
    if done.returncode:
        raise failed(args, done.stderr.decode(errors="replace"))
    return done.stdout.decode(errors="surrogateescape")


def failed(args: Sequence[str], said: str) -> GitFailed:
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    wrong = [line for line in lines if line.startswith(("fatal:", "error:", "remote:"))] or lines or ["no reason given"]
    return GitFailed(f"git {args[0]}: {wrong[-1]}", details={"stderr": said[-4000:]})


def check_git() -> list[Check]:
    try:
        return [Check("git", "ok", git("version").strip())]
    except (ConfigurationError, GitFailed) as error:
        return [Check("git", "fail", error.message, error.remedy or "")]
