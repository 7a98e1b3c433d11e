"""Running a coroutine from a command: Ctrl-C and SIGTERM tear down before they end the process."""

from __future__ import annotations

import asyncio
import os
import signal
import stat
import sys
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from benchflow_core.cli.ui import Ui

if TYPE_CHECKING:
    from benchflow_core.evaluation import Evaluation, EvaluationResult
    from benchflow_core.evaluation.yaml import JobSpec

__all__ = [
    "CommandJob",
    "detach",
    "detach_option",
    "exit_short",
    "fail_under_option",
    "job_json",
    "leave_closed_terminal",
    "run_async",
    "run_job",
]

T = TypeVar("T")


def _share(ctx: click.Context, param: click.Parameter, value: float | None) -> float | None:
    """Refuse a share that is none; nothing is below a NaN, and the gate would be open."""
    if value is not None and not 0 <= value <= 1:
        raise click.BadParameter(f"{value:g} is not between 0 and 1.", ctx, param)
    return value


fail_under_option = click.option(
    "--fail-under", type=float, callback=_share, metavar="X", help="Exit 1 when the score is below X (0 to 1)."
)
detach_option = click.option("--detach", is_flag=True, help="Run in the background; bench eval attach shows it.")


def run_async(work: Coroutine[Any, Any, T], *, drain: Callable[[], None] | None = None) -> T:
    """`asyncio.run`, with SIGTERM and SIGHUP meaning the same as Ctrl-C.

    With `drain`, the first Ctrl-C calls it and only the next one stops the work.
    """

    async def main() -> T:
        task = asyncio.ensure_future(work)
        loop = asyncio.get_running_loop()
        interrupted = False

        def interrupt() -> None:
            nonlocal interrupted
            if drain is not None and not interrupted:
                interrupted = True
                drain()
            else:
                task.cancel()

        loop.add_signal_handler(signal.SIGINT, interrupt)

        def hang_up() -> None:
            leave_closed_terminal()
            task.cancel()

        loop.add_signal_handler(signal.SIGTERM, task.cancel)
        loop.add_signal_handler(signal.SIGHUP, hang_up)
        return await task

    try:
        return asyncio.run(main())
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


def leave_closed_terminal() -> None:
    """Send to /dev/null what would go to a terminal that was closed: printing there is an error that hides the exit."""
    for number in (0, 1, 2):
        with suppress(OSError):
            if stat.S_ISCHR(os.fstat(number).st_mode) and not os.isatty(number):
                nothing = os.open(os.devnull, os.O_RDWR)
                os.dup2(nothing, number)
                os.close(nothing)


def run_job(
    ui: Ui, make: Callable[[Callable[..., None]], Evaluation], more: Callable[[], dict[str, Any]] = dict
) -> tuple[Evaluation, EvaluationResult]:
    """Run the job that `make(listener)` gives, show it going, print how it ended. One Ctrl-C drains, two stop."""
    from benchflow_core.cli.progress import Progress

    with Progress(ui) as progress:
        job = make(progress.hear)
        try:
            result = run_async(job.run(), drain=lambda: job.drain("interrupted"))
        except KeyboardInterrupt:
            progress.stopped(job.job_dir)
            raise
    if ui.json:
        ui.document({**job_json(job), **more()})
    else:
        progress.finish(result)
    return job, result


class CommandJob:
    """A job of a command of a package (`contracts.core.TypedJob`)."""

    def __init__(self, ui: Ui, spec: JobSpec) -> None:
        self._ui, self._spec = ui, spec

    @property
    def settings(self) -> Mapping[str, Any]:
        return vars(self._spec.config)

    def run(self, more: Callable[[Path], Mapping[str, Any]]) -> tuple[Path, bool]:
        from benchflow_core.evaluation import Evaluation
        from benchflow_core.evaluation.yaml import open_job

        jobs: list[Evaluation] = []

        def make(listener: Any) -> Evaluation:
            jobs.append(open_job(self._spec, Evaluation, self._ui.warn, listener=listener))
            return jobs[0]

        job, result = run_job(self._ui, make, lambda: dict(more(jobs[0].job_dir)))
        return job.job_dir, not result.unscored


def job_json(job: Evaluation) -> dict[str, Any]:
    """The one document of a finished job."""
    from benchflow_core.results.files import read_json

    return {**read_json(job.job_dir / "summary.json"), "job_dir": str(job.job_dir), "rollouts": job.results}


def exit_short(result: EvaluationResult, *, verify: bool, fail_under: float | None) -> None:
    """Exit with 1 where a rollout was not scored, or the score is below what was asked for."""
    short = result.unscored if verify else sum(result.error_categories.values())
    if short or (fail_under is not None and result.lowest_score < fail_under):
        raise SystemExit(1)


def detach(ui: Ui, job_dir: Path, more: Sequence[str] = (), *, newer_than: float = 0.0) -> None:
    """Run this very command in the background, without `--detach`."""
    from benchflow_core.evaluation.detach import start_detached

    argv = [word for word in sys.argv[1:] if word != "--detach"]
    pid = start_detached([*argv, *more], job_dir, newer_than=newer_than)

    def text() -> None:
        ui.out(f"Job {job_dir} runs in the background as process {pid}.")
        ui.out(f"  Watch: bench eval attach {job_dir}    Stop: bench eval stop {job_dir}")

    ui.emit({"job_dir": str(job_dir), "pid": pid}, text)
