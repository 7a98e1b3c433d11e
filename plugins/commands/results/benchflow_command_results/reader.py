"""Results for other commands: one reader over the index, the statistics, the comparison and the exporters."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchflow_command_results.index import find_jobs
from benchflow_command_results.jobs import StoredJob, find_folder, finished_rollouts, job_result, stored_jobs
from benchflow_command_results.statistics import trial_statistics
from benchflow_core.contracts import EvaluationResult, JobResults, OwnedPanel, RolloutRecord
from benchflow_core.contracts.common import LoadedPlugin
from benchflow_core.contracts.core import ResultFiles
from benchflow_core.contracts.outcomes import arm_of, outcome_of, planned_items
from benchflow_core.contracts.panels import Panel, PanelText
from benchflow_core.errors import ConfigurationError

__all__ = ["Reader"]


class Reader:
    """Implements `ResultsReader`."""

    statistics = staticmethod(trial_statistics)

    def __init__(self, files: ResultFiles) -> None:
        self._files = files
        self.hide = files.hide

    def find(self, given: str, jobs_dir: Path) -> Path:
        return find_folder(given, jobs_dir)

    def folders(self, root: Path) -> Iterator[Path]:
        return (Path(found.path) for found in find_jobs(root))

    def rollouts(self, root: Path) -> list[Path]:
        return finished_rollouts(root)

    def job(self, folder: Path) -> JobResults:
        job = self._job(folder)
        for row in job.rows:
            row["outcome"], row["side"] = outcome_of(row), arm_of(row)
        settings = job.plan.get("config")
        return JobResults(
            path=folder,
            name=job.name,
            rows=job.rows,
            unfinished=job.unfinished,
            summary=job_result(self._files, job).to_json({**job.about}),
            finished=job.finished,
            running=self._files.is_running(folder),
            planned=planned_items(job.plan),
            settings=dict(settings) if isinstance(settings, dict) else {},
        )

    def _job(self, folder: Path) -> StoredJob:
        for job in stored_jobs(self._files, folder):
            if job.path == folder:
                return job
        raise ConfigurationError(f"{folder} is no job.")

    def rollout(self, folder: Path) -> RolloutRecord:
        from benchflow_command_results.export import stored_rollout

        return stored_rollout(self._files, folder)

    def live(self, folder: Path) -> Mapping[str, Any]:
        return self._files.read_object(folder / "live.json")

    def compare(
        self, jobs: Sequence[Path | str], metric: str = "pass", arms: Sequence[str] = ()
    ) -> list[dict[str, Any]]:
        from benchflow_command_results.compare import compare, load_sides

        sides = load_sides(self._files, [str(job) for job in jobs])
        chosen = sorted((s for s in sides if s.name in arms), key=lambda s: arms.index(s.name)) or sides
        return [one.to_json() for one in compare(self._files, chosen, metric=metric)]

    def report(self, result: EvaluationResult) -> Iterator[str]:
        from benchflow_command_results.report import score_report

        return score_report(result)

    def estimate(
        self, jobs_dir: Path, job_name: str, rollouts: int, agent: str, model: str | None
    ) -> Mapping[str, Any]:
        from benchflow_command_results.estimate import estimate

        return estimate(self._files, jobs_dir, job_name, rollouts, agent, model)

    def health(self, folder: Path) -> Mapping[str, Any]:
        job = self._job(folder)
        result = job_result(self._files, job)
        return {
            "schema_version": "1.0",
            "written_at": datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "job": folder.name,
            "job_dir": str(folder.absolute()),
            "healthy": not result.unscored and not job.about.get("stopped"),
            "planned": result.total,
            "scored": result.scored,
            "coverage": result.coverage,
            "errors": result.error_categories,
            **{name: job.about.get(name) for name in ("stopped", "not_run", "drift")},
            "notable": [self._notable(row) for row in job.rows if row["rewards"] is None or row.get("flags")],
        }

    def _notable(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return what kept a rollout from a plain score; the index has only a part of an error."""
        result = self._files.read_result(Path(row["rollout_dir"])) or row
        return {
            "rollout": row["rollout_name"],
            "task": row["task_name"],
            **{key: result.get(key) or result.get(f"verifier_{key}") for key in ("error", "error_info")},
            "flags": row.get("flags") or [],
        }

    def export(self, folder: Path, exporter: LoadedPlugin) -> None:
        from benchflow_command_results.export import export_rollouts

        list(export_rollouts(self._files, [folder], exporter, exporter.spec.options, None))

    def panels(self, record: RolloutRecord | JobResults) -> list[OwnedPanel]:
        found = []
        for kind in ("exporter", "observer"):
            for loaded in self._files.plugins(kind):
                make = loaded.spec.job_panel if isinstance(record, JobResults) else loaded.spec.panel
                panel = _made(make, record) if make else None
                if panel is not None:
                    owner = loaded.stamp()
                    found.append(OwnedPanel(f"{owner['distribution']} {owner['version']}", panel))
        return found

    @contextmanager
    def locked(self, path: Path) -> Iterator[None]:
        folders = list(self.folders(_job_of(path)))
        if not folders:
            raise ConfigurationError(f"{path} holds no job.")
        with ExitStack() as stack:
            for folder in folders:
                stack.enter_context(self._files.lock_of(folder))
            yield

    def refresh(self, path: Path) -> list[EvaluationResult]:
        results = []
        for job in stored_jobs(self._files, _job_of(path), cached=False):
            result = job_result(self._files, job)
            if job.finished:
                self._files.write_json(job.path / "summary.json", result.to_json(job.about))
            results.append(result)
        return results


def _job_of(path: Path) -> Path:
    return path.parent if (path / "result.json").is_file() else path


def _made(make: Callable[[Any], Panel | None], record: RolloutRecord | JobResults) -> Panel | None:
    """A plugin's panel is an extra: its failure is shown where the panel would be, and costs nothing else."""
    try:
        panel = make(record)
    except Exception as error:
        return Panel(
            "A panel could not be made", [PanelText(f"{type(error).__name__}: {' '.join(str(error).split())}")]
        )
    if panel is not None and not isinstance(panel, Panel):
        return Panel("A panel could not be made", [PanelText(f"The plugin gave a {type(panel).__name__}.")])
    return panel
