"""Results as commands read them: through the core's index, statistics and redaction. Nothing here writes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, Protocol

from benchflow_core.contracts.exporters import RolloutRecord
from benchflow_core.contracts.panels import Panel
from benchflow_core.quick import dataclass

__all__ = ["JobResults", "OwnedPanel", "ResultsReader"]


@dataclass(frozen=True, slots=True)
class JobResults:
    """A folder of rollouts as it is on disk now."""

    path: Path
    name: str
    rows: Sequence[Mapping[str, Any]]
    """One per finished rollout that counts: fields of its `result.json`, and `outcome`, `rollout_dir` and `side`: its
    arm, or agent and model where the job has none."""
    unfinished: Sequence[str]
    """Rollouts that were begun and left no result."""
    summary: Mapping[str, Any]
    """What `summary.json` would say of these rollouts now."""
    finished: bool
    running: bool
    """A process works on it at this moment."""
    planned: Sequence[Mapping[str, Any]] = ()
    """Every rollout it set out to run, in its order: `rollout`, `task`, `trial`, `arm`; empty where it has no plan."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """What it was asked to do, as its `job.json` holds it."""


@dataclass(frozen=True, slots=True)
class OwnedPanel:
    """A panel, and the plugin that made it."""

    owner: str
    panel: Panel


class ResultsReader(Protocol):
    """What `CommandContext.results()` gives. Raises `ConfigurationError` for what is not there."""

    def find(self, given: str, jobs_dir: Path) -> Path:
        """A job or rollout by its path, by its name below `jobs_dir`, or `latest`."""

    def folders(self, root: Path) -> Iterator[Path]:
        """Every job below a folder, itself included; no rollout is read."""

    def job(self, folder: Path) -> JobResults:
        """One job, read through the index."""

    def rollout(self, folder: Path) -> RolloutRecord:
        """One rollout, finished or not: `result` is empty while it runs."""

    def live(self, folder: Path) -> Mapping[str, Any]:
        """What a running job does at this moment; empty where nothing runs."""

    def compare(self, jobs: Sequence[Path | str], metric: str = "pass") -> list[dict[str, Any]]:
        """Each of the others against the first, paired by task; of one job, its arms. `JOB:ARM` is one arm of a job."""

    def panels(self, record: RolloutRecord | JobResults) -> list[OwnedPanel]:
        """What installed exporters and observers add to the page; one that fails adds a panel that says so."""

    def hide(self, data: bytes) -> bytes:
        """Without the secrets this host knows, what looks like a key, and the user's home folder."""
