"""One writer per job: a lock that the kernel gives back when its owner dies, however it dies."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from benchflow_core.errors import ConfigurationError
from benchflow_core.results.clock import now
from benchflow_core.results.files import cannot_write

__all__ = ["JobLock", "hold_as_worker", "owner_of", "wait_for_workers"]

NAME = "job.lock"
WORKERS = "workers.lock"
_TEARDOWN = 180.0
"""Seconds that workers of a killed job may take to remove their boxes."""


class JobLock:
    """Held from the moment it is made until `release` or the end of the process."""

    def __init__(self, job_dir: Path) -> None:
        self.path = job_dir / NAME
        try:
            self._fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise cannot_write(self.path, error) from error
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            owner = _read(self._fd)
            os.close(self._fd)
            raise _refusal(job_dir, owner) from error
        owner = {"pid": os.getpid(), "host": socket.gethostname(), "since": now()}
        try:
            os.ftruncate(self._fd, 0)
            os.pwrite(self._fd, json.dumps(owner).encode(), 0)
        except OSError as error:
            self.release()
            raise cannot_write(self.path, error) from error

    def release(self) -> None:
        """Safe to call again."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            with suppress(OSError):
                os.ftruncate(fd, 0)
            os.close(fd)


def owner_of(job_dir: Path) -> dict[str, Any] | None:
    """Who runs this job now: pid, host and since when. `None`: nobody."""
    try:
        fd = os.open(job_dir / NAME, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return _read(fd)
    finally:
        os.close(fd)
    return None


def hold_as_worker(job_dir: Path) -> None:
    """Held until this process ends: nobody goes on with the job while it still tears down."""
    with suppress(OSError):  # a file system without locks: then only its results are safe, by their order
        fd = os.open(job_dir / WORKERS, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)


async def wait_for_workers(job_dir: Path, warn: Callable[[str], None]) -> None:
    """Until the workers of a killed run of this job have ended."""
    try:
        fd = os.open(job_dir / WORKERS, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return
    try:
        for beat in range(int(_TEARDOWN / 0.1)):
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except OSError:
                if beat == 10:
                    warn("waiting for the workers of an earlier run to remove their boxes.")
                await asyncio.sleep(0.1)
    finally:
        os.close(fd)
    raise ConfigurationError(f"workers of an earlier run still hold {job_dir / WORKERS}.", remedy="End them first.")


def _read(fd: int) -> dict[str, Any]:
    try:
        return dict(json.loads(os.pread(fd, 4096, 0)))
    except (ValueError, TypeError):
        return {}


def _refusal(job_dir: Path, owner: dict[str, Any]) -> ConfigurationError:
    who = f"process {owner.get('pid', '?')} on {owner.get('host', 'this host')}, since {owner.get('since', '?')}"
    return ConfigurationError(
        f"{job_dir} is being run by {who}.",
        remedy=f"Watch it: bench eval attach {job_dir}, or stop it: bench eval stop {job_dir}",
        details={"owner": owner},
    )
