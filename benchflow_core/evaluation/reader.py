"""Results for the commands of plugins: one reader over the index, the statistics, the comparison and the redaction."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from benchflow_core.contracts.exporters import RolloutRecord
from benchflow_core.contracts.panels import Panel, PanelText
from benchflow_core.contracts.results import JobResults, OwnedPanel
from benchflow_core.errors import ConfigurationError
from benchflow_core.evaluation.joblock import owner_of
from benchflow_core.evaluation.live import LIVE
from benchflow_core.evaluation.metrics import index_cache, job_result
from benchflow_core.evaluation.summary import arm_of
from benchflow_core.results.checked import read_object, readable_result
from benchflow_core.results.files import read_jsonl
from benchflow_core.results.index import find_jobs
from benchflow_core.results.jobs import find_folder, planned_items, stored_jobs
from benchflow_core.results.layout import RolloutDir
from benchflow_core.results.redact import Cleaner, Redactor
from benchflow_core.rollout.result import outcome_of

__all__ = ["Reader"]


class Reader:
    """Implements `ResultsReader`."""

    def find(self, given: str, jobs_dir: Path) -> Path:
        return find_folder(given, jobs_dir)

    def folders(self, root: Path) -> Iterator[Path]:
        for found in find_jobs(root):
            yield Path(found.path)

    def job(self, folder: Path) -> JobResults:
        for job in stored_jobs(folder, index_cache()):
            if job.path == folder:
                break
        else:
            raise ConfigurationError(f"{folder} is no job.")
        for row in job.rows:
            row["outcome"], row["side"] = outcome_of(row), arm_of(row)
        plan = read_object(folder / "job.json")
        return JobResults(
            path=folder,
            name=job.name,
            rows=job.rows,
            unfinished=job.unfinished,
            summary=job_result(job).to_json({**job.about}),
            finished=job.finished,
            running=owner_of(folder) is not None,
            planned=planned_items(plan),
            settings=dict(plan["config"]) if isinstance(plan.get("config"), dict) else {},
        )

    def rollout(self, folder: Path) -> RolloutRecord:
        files = RolloutDir(folder)
        return RolloutRecord(folder, _result(folder), read_object(files.config), partial(read_jsonl, files.events))

    def live(self, folder: Path) -> Mapping[str, Any]:
        return read_object(folder / LIVE)

    def compare(self, jobs: Sequence[Path | str], metric: str = "pass") -> list[dict[str, Any]]:
        from benchflow_core.evaluation.compare import compare, load_sides

        return [one.to_json() for one in compare(load_sides([str(job) for job in jobs]), metric=metric)]

    def panels(self, record: RolloutRecord | JobResults) -> list[OwnedPanel]:
        from benchflow_core.plugins import registry

        found = []
        for kind in ("exporter", "observer"):
            for loaded in registry().all(kind):
                make = loaded.spec.job_panel if isinstance(record, JobResults) else loaded.spec.panel
                panel = _made(make, record) if make else None
                if panel is not None:
                    found.append(OwnedPanel(f"{loaded.distribution} {loaded.version}", panel))
        return found

    def hide(self, data: bytes) -> bytes:
        return self._clean(data)

    @cached_property
    def _clean(self) -> Cleaner:
        from benchflow_core.dotenv import user_env

        env = user_env()
        return Cleaner(Redactor.from_env(env), env.get("HOME"))


def _made(make: Callable[[Any], Panel | None], record: RolloutRecord | JobResults) -> Panel | None:
    """A plugin's panel is an extra: its failure is told where the panel would be, and costs nothing else."""
    try:
        panel = make(record)
    except Exception as error:
        from benchflow_core.plugins.complaints import told

        return Panel("A panel could not be made", [PanelText(told(error))])
    if panel is not None and not isinstance(panel, Panel):
        return Panel("A panel could not be made", [PanelText(f"The plugin gave a {type(panel).__name__}.")])
    return panel


def _result(folder: Path) -> dict[str, Any]:
    """Nothing where the rollout has not ended; what is wrong with it where it cannot be read."""
    return readable_result(folder) if RolloutDir(folder).result.exists() else {}
