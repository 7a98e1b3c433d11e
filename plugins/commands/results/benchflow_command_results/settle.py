"""`bench eval settle`: a person's judgement on a contested rollout, kept beside its result with who, when and why."""

from __future__ import annotations

import getpass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import click

from benchflow_command_results.jobs import find_folder, result_of
from benchflow_command_results.show import jobs_dir_option
from benchflow_core.contracts import CommandContext
from benchflow_core.contracts.core import ResultFiles
from benchflow_core.contracts.outcomes import contested_scores
from benchflow_core.errors import ConfigurationError, UsageError

__all__ = ["settle", "settle_rollout"]

_VERSION = "1.0"


@click.command("settle")
@click.argument("rollout", metavar="ROLLOUT")
@click.option("--as-left", "choice", flag_value="as-left", help="The score on the agent's files as they are.")
@click.option("--clean", "choice", flag_value="clean", help="The score with the changes undone that could steer.")
@click.option("--because", required=True, metavar="TEXT", help="Why; kept with the judgement.")
@click.option("--by", metavar="NAME", help="Who; without it the user of this machine.")
@jobs_dir_option
@click.pass_obj
def settle(
    ui: CommandContext,
    rollout: str,
    choice: Literal["as-left", "clean"] | None,
    because: str,
    by: str | None,
    jobs_dir: Path,
) -> None:
    """Settle a contested rollout.

    The judgement is kept in settlement.json and in the result, and summaries count with it.
    """
    if choice is None:
        raise UsageError("which score is to count?", remedy="Add --as-left or --clean.")
    path = find_folder(rollout, jobs_dir)
    if not (path / "result.json").is_file():
        raise UsageError(f"{path} is no rollout.", remedy="Name one: bench eval show JOB lists them.")
    reader = ui.results()
    with reader.locked(path):
        result = settle_rollout(ui.core(), path, choice, because, by)
        jobs = reader.refresh(path)

    def text() -> None:
        ui.out(f"{path.name}: {choice} counts, because {because}")
        for job in jobs:
            ui.out(f"{job.job_dir}: {job.text}")

    ui.emit({"rollout": str(path), "rewards": result["rewards"], "settlement": result["settlement"]}, text)


def settle_rollout(
    files: ResultFiles, folder: Path, choice: Literal["as-left", "clean"], because: str, by: str | None = None
) -> dict[str, Any]:
    """Let one of the two scores count, and return the result. Settling again replaces the judgement."""
    result = result_of(files, folder)
    scores = contested_scores(result)
    if scores is None:
        raise ConfigurationError(
            f"{folder.name} is not contested: there is nothing to settle.",
            remedy=f"What it says of its verification: bench eval show {folder}",
        )
    if not because.strip():
        raise ConfigurationError("--because is empty.", remedy="Say why, for those who read the score.")
    at = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    judgement = {"choice": choice, "because": because, "by": by or _user(), "at": at}
    rewards = scores[choice]
    files.write_json(folder / "settlement.json", {"schema_version": _VERSION, **judgement, "scores": scores})
    result |= {"rewards": rewards, "settlement": judgement}
    result |= dict.fromkeys(("verifier_error", "verifier_error_category", "verifier_error_info")) if rewards else {}
    files.write_json(folder / "result.json", result)
    return result


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"
