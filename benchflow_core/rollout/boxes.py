"""Getting a box ready for an agent: users, folders, files, set-up commands, the health gate."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Mapping
from pathlib import Path

from benchflow_core.contracts.sandboxes import Sandbox
from benchflow_core.contracts.tasks import Healthcheck, SetupCommand
from benchflow_core.errors import ConfigurationError, InfrastructureError, TaskError

__all__ = ["ensure_user", "run_setup", "said", "stage_logs", "user_home", "wait_healthy"]

_USER = re.compile(r"[a-z_][a-z0-9_-]{0,31}|\d+")
_LOGS = ("agent", "verifier", "artifacts")
_ADD_USER = """
id "$1" >/dev/null 2>&1 && exit 0
if command -v useradd >/dev/null 2>&1; then useradd -m -s /bin/sh "$1"
elif command -v adduser >/dev/null 2>&1; then adduser -D -s /bin/sh "$1"
else
  n=1000; while grep -q "^[^:]*:[^:]*:$n:" /etc/passwd; do n=$((n+1)); done
  echo "$1:x:$n:$n::/home/$1:/bin/sh" >> /etc/passwd; echo "$1:x:$n:" >> /etc/group
  mkdir -p "/home/$1" && chown "$n:$n" "/home/$1"
fi
"""


def stage_logs(folder: Path) -> Path:
    """The log folders as every box gets them: open to every user, as tasks expect. Made once per job."""
    folder.mkdir()
    folder.chmod(0o755)
    for name in _LOGS:
        (folder / name).mkdir()
        (folder / name).chmod(0o777)
    return folder


async def ensure_user(sandbox: Sandbox, user: str, workdir: str) -> None:
    """Make the user if the image has none of that name, and give it the working directory."""
    if not _USER.fullmatch(user):
        raise ConfigurationError(f"'{user}' is not a user name.", remedy="Use lower-case letters, digits, '-' and '_'.")
    script = f'{_ADD_USER}\nchown -R "$1" "$2"' if not user.isdigit() else 'chown -R "$1" "$2"'
    done = await sandbox.exec(("sh", "-c", script, "sh", user, workdir), user="root", cwd="/", timeout=120)
    if done.exit_code:
        raise InfrastructureError(f"user '{user}' could not be set up: {_tail(done.stderr)}")


async def user_home(sandbox: Sandbox, user: str | None) -> str:
    """Where a user lives, asked of the box itself. Root is not asked for: it is always the same."""
    if user in (None, "root", "0"):
        return "/root"
    done = await sandbox.exec(
        ("sh", "-c", f"echo ~{user}") if _USER.fullmatch(user or "") else ("true",), user="root", cwd="/"
    )
    home = done.stdout.decode("utf-8", "replace").strip()
    return home if home.startswith("/") else "/tmp"


async def run_setup(sandbox: Sandbox, command: SetupCommand, env: Mapping[str, str]) -> None:
    """One of the task's own commands; its failure is the task's."""
    done = await sandbox.exec(
        ("sh", "-c", command.command),
        cwd=command.cwd,
        env={**env, **command.env},
        user=command.user,
        timeout=command.timeout,
        service=command.service,
    )
    if done.timed_out:
        raise TaskError(f"set-up command took longer than {command.timeout:.0f} s: {command.command}")
    if done.exit_code:
        raise TaskError(f"set-up command failed with exit code {done.exit_code}: {command.command}{said(done.stderr)}")


async def wait_healthy(sandbox: Sandbox, check: Healthcheck) -> None:
    """Docker's rules: failures inside the start period do not count, then `retries` in a row are fatal."""
    started, failures, last = time.monotonic(), 0, ""
    while True:
        done = await sandbox.exec(("sh", "-c", check.command), timeout=check.timeout)
        if done.exit_code == 0 and not done.timed_out:
            return
        starting = time.monotonic() - started < check.start_period
        failures += not starting
        last = ": timed out" if done.timed_out else said(done.stderr or done.stdout)
        if failures >= check.retries:
            raise TaskError(f"health check failed {failures} times in a row: {check.command}{last}")
        await asyncio.sleep(check.start_interval if starting else check.interval)


def said(output: bytes) -> str:
    """The end of what a command printed, to stand behind what it did; nothing if it was silent."""
    text = _tail(output)
    return f": {text}" if text else ""


def _tail(output: bytes, limit: int = 300) -> str:
    text = " ".join(output.decode("utf-8", "replace").split())
    return text if len(text) <= limit else "…" + text[-limit:]
