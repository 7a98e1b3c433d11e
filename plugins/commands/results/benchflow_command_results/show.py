"""`bench eval show`: what one wants to know first about a job or a rollout."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from benchflow_command_results.index import Row
from benchflow_command_results.jobs import StoredJob, find_folder, job_result, job_team, result_of, stored_jobs
from benchflow_command_results.report import score_report
from benchflow_core.contracts import CommandContext
from benchflow_core.contracts.outcomes import arm_of, outcome_of, team_of
from benchflow_core.errors import ConfigurationError

__all__ = ["jobs_dir_option", "show"]

_SHOWN = 20
_WORST_FIRST = ("errored", "verifier_errored", "failed", "passed")

jobs_dir_option = click.option(
    "-o",
    "--jobs-dir",
    type=click.Path(path_type=Path),
    default="jobs",
    show_default=True,
    help="Where jobs are by name.",
)


@click.command("show")
@click.argument("job", default="latest", metavar="[JOB|ROLLOUT]")
@click.option("--all", "everything", is_flag=True, help="Every rollout of a job, not only the first that did not pass.")
@jobs_dir_option
@click.pass_obj
def show(ui: CommandContext, job: str, everything: bool, jobs_dir: Path) -> None:
    """What a job or a rollout says; without a name, the newest job.

    A job: its score with coverage and interval, and the rollouts that did not pass. A rollout: its outcome, why, what
    to know about the score, and where to look.
    """
    path = find_folder(job, jobs_dir)
    if (path / "result.json").is_file():
        _show_rollout(ui, path)
    else:
        _show_job(ui, path, everything)


def _show_job(ui: CommandContext, path: Path, everything: bool) -> None:
    job = next((job for job in stored_jobs(ui.core(), path) if job.path == path), None)
    if job is None:
        raise ConfigurationError(f"{path} is no job.", remedy=f"Jobs below it: bench eval list {path}")
    result = job_result(ui.core(), job)
    rows = sorted(job.rows, key=lambda row: (_WORST_FIRST.index(outcome_of(row)), row["task_name"], row["trial"] or 0))
    data = result.to_json({**job.about, "status": "finished" if job.finished else "unfinished"})

    def text() -> None:
        for line in (*_heading(job), *score_report(result)):
            ui.out(line)
        _table(ui, rows, everything, arms=bool(result.arms))

    ui.emit({**data, "job_dir": str(path), "unfinished": job.unfinished, "rollouts": rows}, text)


def _heading(job: StoredJob) -> Iterator[str]:
    when = [f"started {job.began[:19]} UTC"] if job.began else []
    yield f"Job {job.name}: {', '.join([*(str(part) for part in job_team(job).values() if part), *when])}"
    if not job.finished:
        yield f"  not finished: {len(job.rows)} of {job.planned} rollouts have a result."
        yield f"  To go on: bench eval resume {job.path}"


def _table(ui: CommandContext, rows: list[Row], everything: bool, *, arms: bool) -> None:
    chosen = rows if everything else [row for row in rows if outcome_of(row) != "passed"][:_SHOWN]
    if not chosen:
        return
    ui.out()
    cells = []
    for row in chosen:
        seconds = (row.get("timing") or {}).get("total")
        why = row.get("error") or row.get("verifier_error") or ", ".join(row.get("flags") or ())
        took = f"{seconds:.1f} s" if seconds is not None else ""
        arm = [arm_of(row)] if arms else []
        cells.append([row["rollout_name"], *arm, outcome_of(row), _rewards(row), took, str(why)])
    ui.table(["ROLLOUT", *(["ARM"] if arms else []), "OUTCOME", "REWARD", "TIME", "WHY"], cells)
    if len(chosen) < len(rows):
        ui.note(f"{len(rows) - len(chosen)} rollouts are not shown; --all shows every one")


def _rewards(row: Mapping[str, Any]) -> str:
    return ", ".join(
        f"{value:g}" if name == "reward" else f"{name} {value:g}" for name, value in (row.get("rewards") or {}).items()
    )


# --- one rollout --------------------------------------------------------------------------------------------


def _show_rollout(ui: CommandContext, path: Path) -> None:
    result = result_of(ui.core(), path)
    lines = [*_about_rollout(result), *_where(ui, path)]
    ui.emit({**result, "rollout_dir": str(path)}, lambda: ui.out("\n".join(lines)))


def _about_rollout(result: Mapping[str, Any]) -> Iterator[str]:
    reward = f", reward {_rewards(result)}" if result.get("rewards") else ""
    yield f"{result['task_name']}: {outcome_of(result)}{reward}"
    who = ", ".join(str(part) for part in (*team_of(result), result.get("sandbox"), result.get("arm")) if part)
    number = f"trial {result.get('trial')}, attempt {result.get('attempt')}"
    yield f"  rollout {result['rollout_name']}, {number}: {who}"
    for key in ("error", "verifier_error"):
        if result.get(key):
            info = result.get(f"{key}_info") or {}
            kind = f" ({info['kind']}:{info['code']})" if info else ""
            yield f"  {key.replace('_', ' ')}{kind}: {result[key]}{' ' + info['remedy'] if info.get('remedy') else ''}"
    yield f"  image {result.get('image_fidelity')}, verifier isolation {result.get('verifier_isolation')}"
    yield from _verification(result)
    if result.get("verdict"):
        number, of = (result["verdict"].get(key) for key in ("number", "of"))
        yield f"  verdict {number} of {of} counts; all are in verdicts/"
    if result.get("flags"):
        yield f"  flags: {', '.join(result['flags'])}"
    for notice in result.get("notices") or ():
        yield f"  note: {notice}"
    for finding in (result.get("findings") or ())[:_SHOWN]:
        yield f"  finding: {finding.get('code')} {finding.get('path')} ({finding.get('action')}): {finding.get('why')}"
    for test in (result.get("tests") or ())[:_SHOWN]:
        if test.get("status") != "passed":
            yield f"  test {test.get('status')}: {test.get('name')} {test.get('message') or ''}".rstrip()
    yield from _numbers(result)


def _verification(result: Mapping[str, Any]) -> Iterator[str]:
    """The readings, what settled a difference, and by which changes it came."""
    found = result.get("verification") or {}
    for step, one in {"": found, **(found.get("steps") or {})}.items():
        readings = (one.get("readings") or {}).items()
        if len(readings) > 1:
            said = ", ".join(
                f"{name.replace('_', ' ')} {_rewards(reading) or 'no reward'}" for name, reading in readings
            )
            yield f"  readings{f' of step {step}' if step else ''}: {said}"
        if one.get("contested") and one.get("readings"):
            yield f"  contested: {_settled(one, result)}"
        for culprit in one.get("culprits") or ():
            yield f"    it depends on {culprit['path']} ({culprit['change']}), row {culprit['row']}: {culprit['why']}"


def _settled(found: Mapping[str, Any], result: Mapping[str, Any]) -> str:
    if judgement := result.get("settlement"):
        return f"{judgement['by']} let {judgement['choice']} count: {judgement['because']}"
    if found.get("settled_by"):
        return f"settled by {found['settled_by']}, and scored as left"
    return "unsettled; to judge it yourself: bench eval settle ROLLOUT --as-left|--clean --because TEXT"


def _numbers(result: Mapping[str, Any]) -> Iterator[str]:
    timing = result.get("timing") or {}
    if timing:
        yield "  time: " + ", ".join(f"{name.replace('_', ' ')} {value:.1f} s" for name, value in timing.items())
    used = result.get("agent_result") or {}
    tokens = used.get("total_tokens")
    counts = [f"{result.get('n_prompts')} prompts", f"{result.get('n_tool_calls')} tool calls"]
    counts.append("tokens unknown" if tokens is None else f"{tokens:,} tokens")
    if used.get("cost_usd") is not None:
        counts.append(f"${used['cost_usd']:.4f}")
    yield f"  {', '.join(counts)}"


def _where(ui: CommandContext, path: Path) -> Iterator[str]:
    """The last thing the agent said, and the files worth opening."""
    trajectory, last = path / "trajectory" / "acp_trajectory.jsonl", ""
    with suppress(OSError, ValueError):
        for entry in ui.core().read_lines(trajectory):
            if entry.get("type") == "agent_message":
                last = str(entry.get("text") or "")
    if last:
        yield f"  the agent's last words: {' '.join(last.split())[-300:]}"
    if (path / "state.json").is_file():
        yield f"  its state was kept: bench eval score {path} verifies it again"
    for file in (trajectory, path / "verifier" / "test-stdout.txt", path / "events.jsonl"):
        if file.is_file():
            yield f"  {file}"
