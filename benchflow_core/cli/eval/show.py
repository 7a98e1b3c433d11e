"""`bench eval show`: what one wants to know first about a job or a rollout."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from benchflow_core.cli.ui import Ui

if TYPE_CHECKING:
    from benchflow_core.results.index import Row
    from benchflow_core.results.jobs import StoredJob

__all__ = ["show"]

_SHOWN = 20


@click.command("show")
@click.argument("job", default="latest", metavar="[JOB|ROLLOUT]")
@click.option("--all", "everything", is_flag=True, help="Every rollout of a job, not only the first that did not pass.")
@click.option("-o", "--jobs-dir", type=click.Path(), default="jobs", show_default=True, help="Where jobs are by name.")
@click.pass_obj
def show(ui: Ui, job: str, everything: bool, jobs_dir: str) -> None:
    """What a job or a rollout says; without a name, the newest job.

    A job: its score with coverage and interval, and the rollouts that did not pass. A rollout: its outcome, why, what
    to know about the score, and where to look.
    """
    from benchflow_core.results.jobs import find_folder

    path = find_folder(job, Path(jobs_dir))
    if (path / "result.json").is_file():
        _show_rollout(ui, path)
    else:
        _show_job(ui, path, everything)


def _show_job(ui: Ui, path: Path, everything: bool) -> None:
    from benchflow_core.cli.eval.scores import score_report
    from benchflow_core.errors import ConfigurationError
    from benchflow_core.evaluation.metrics import index_cache, job_result
    from benchflow_core.results.jobs import stored_jobs

    found = [job for job in stored_jobs(path, index_cache()) if job.path == path]
    if not found:
        raise ConfigurationError(f"{path} is no job.", remedy=f"Jobs below it: bench eval list {path}")
    job = found[0]
    result = job_result(job)
    rows = sorted(job.rows, key=lambda row: (_rank(row), row["task_name"], row["trial"] or 0))
    data = result.to_json({**job.about, "status": "finished" if job.finished else "unfinished"})

    def text() -> None:
        for line in _heading(job):
            ui.out(line)
        for line in score_report(result):
            ui.out(line)
        _table(ui, rows, everything, arms=bool(result.arms))

    ui.emit({**data, "job_dir": str(path), "unfinished": job.unfinished, "rollouts": rows}, text)


def _heading(job: StoredJob) -> Iterator[str]:
    from benchflow_core.evaluation.metrics import job_team

    who = job_team(job).values()
    began = min((row["started_at"] or "" for row in job.rows), default="")
    when = [f"started {began[:19]} UTC"] if began else []
    yield f"Job {job.name}: {', '.join([*(str(part) for part in who if part), *when])}"
    if not job.finished:
        yield f"  not finished: {len(job.rows)} of {job.planned} rollouts have a result."
        yield f"  To go on: bench eval resume {job.path}"


def _rank(row: Row) -> int:
    from benchflow_core.rollout.result import outcome_of

    return ("errored", "verifier_errored", "failed", "passed").index(outcome_of(row))


def _table(ui: Ui, rows: list[Row], everything: bool, *, arms: bool) -> None:
    from benchflow_core.evaluation.summary import arm_of
    from benchflow_core.rollout.result import outcome_of

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


def _show_rollout(ui: Ui, path: Path) -> None:
    from benchflow_core.errors import ConfigurationError
    from benchflow_core.results.checked import read_result

    try:
        result = read_result(path)
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"{path / 'result.json'} cannot be read: {error}.") from error
    lines = [*_about_rollout(result), *_where(path)]
    ui.emit({**result, "rollout_dir": str(path)}, lambda: ui.out("\n".join(lines)))


def _about_rollout(result: Mapping[str, Any]) -> Iterator[str]:
    from benchflow_core.evaluation.summary import team_of
    from benchflow_core.rollout.result import outcome_of

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


def _where(path: Path) -> Iterator[str]:
    """The last thing the agent said, and the files worth opening."""
    from benchflow_core.results.files import read_jsonl
    from benchflow_core.results.layout import RolloutDir

    folder, last = RolloutDir(path), ""
    with suppress(OSError, ValueError):
        for entry in read_jsonl(folder.trajectory):
            if entry.get("type") == "agent_message":
                last = str(entry.get("text") or "")
    if last:
        yield f"  the agent's last words: {' '.join(last.split())[-300:]}"
    if (path / "state.json").is_file():
        yield f"  its state was kept: bench eval score {path} verifies it again"
    for file in (folder.trajectory, folder.verifier / "test-stdout.txt", folder.events):
        if file.is_file():
            yield f"  {file}"
