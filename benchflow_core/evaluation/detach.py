"""Running a job in the background: the same command again, in a session of its own, with its output in `job.log`."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from benchflow_core.errors import BenchflowError, ConfigurationError
from benchflow_core.evaluation.jobfile import JOB_FILE

__all__ = ["LOG", "start_detached"]

LOG = "job.log"


def start_detached(argv: Sequence[str], job_dir: Path, *, newer_than: float = 0.0) -> int:
    """Start `bench argv` and return its pid once its plan is written. What it refuses is raised here."""
    job_dir.parent.mkdir(parents=True, exist_ok=True)
    log = job_dir.parent / f".{job_dir.name}.{os.getpid()}.log"
    with log.open("wb") as stream:
        process = subprocess.Popen(
            [sys.executable, "-m", "benchflow_core.cli.main", *argv],
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=stream,
            start_new_session=True,
        )
    try:
        while not _planned(job_dir, newer_than):
            if process.poll() is not None:
                if _planned(job_dir, newer_than):
                    break
                raise _failure(log, process.returncode)
            time.sleep(0.05)
        log.replace(job_dir / LOG)
    except KeyboardInterrupt:
        process.terminate()
        process.wait()
        raise
    finally:
        with suppress(OSError):
            log.unlink(missing_ok=True)
    return process.pid


def _planned(job_dir: Path, newer_than: float) -> bool:
    try:
        return (job_dir / JOB_FILE).stat().st_mtime > newer_than
    except OSError:
        return False


def _failure(log: Path, code: int) -> BenchflowError:
    lines = [line for line in log.read_text("utf-8", "replace").splitlines() if line.strip()]
    said = next((line for line in reversed(lines) if line.startswith("error: ")), lines[-1] if lines else "")
    message = said.removeprefix("error: ") or f"it ended with exit code {code}."
    return ConfigurationError(f"the job did not start: {message}")
