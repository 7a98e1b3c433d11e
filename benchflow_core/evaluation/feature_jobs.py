"""The parts that features have in a job: in its order, in the settings of each rollout, and in its summary."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from benchflow_core.contracts.features import FeatureJob, FinishedRollout
from benchflow_core.errors import PluginError
from benchflow_core.plugins import Loaded, Registry
from benchflow_core.plugins.dotted import resolve
from benchflow_core.rollout.feature_views import settings_view
from benchflow_core.rollout.features import feature_settings, guarded, in_order
from benchflow_core.settings.models import JobSettings

__all__ = ["FeatureJobs"]


class FeatureJobs:
    """The features that take part in a job: those with a part in jobs of which a setting was given."""

    def __init__(self, config: JobSettings, plugins: Registry) -> None:
        self._settings = settings_view(config)
        self._kinds: list[tuple[Loaded, type[FeatureJob]]] = [
            (feature, resolve(feature.spec.job, feature.who))
            for feature in in_order(plugins.all("feature"))
            if feature.spec.job and feature_settings(feature, self._settings)[1]
        ]
        self._open: list[tuple[Loaded, FeatureJob]] = []

    @property
    def sequential(self) -> str:
        """The feature that wants one rollout after the other, in the order of the plan; empty: none does."""
        return next((feature.name for feature, kind in self._kinds if kind.sequential), "")

    def open(self, job_dir: Path, earlier: Sequence[FinishedRollout]) -> None:
        """Begin, or go on after the rollouts that ended earlier."""
        for feature, kind in self._kinds:
            job = guarded(feature, "job", partial(kind, self._settings, job_dir, earlier))
            self._open.append((feature, job))

    def next(self) -> dict[str, Any]:
        """Return the settings that differ for the rollout that starts now."""
        found: dict[str, Any] = {}
        for feature, job in self._open:
            found.update(guarded(feature, "next", job.next))
        return found

    def finished(self, done: FinishedRollout) -> Iterator[Mapping[str, Any]]:
        """Tell every feature; gives what they want to be kept in the journal."""
        for feature, job in self._open:
            if said := guarded(feature, "finished", partial(job.finished, done)):
                yield {"feature": feature.name, **said}

    def summary(self) -> dict[str, Any]:
        """Return the features' keys of `summary.json`; those that a feature did not declare are refused."""
        found: dict[str, Any] = {}
        for feature, job in self._open:
            own = guarded(feature, "summary", job.summary)
            if odd := sorted(set(own) - set(feature.spec.keys.get("summary", ()))):
                raise PluginError(f"{feature.who} writes '{odd[0]}' to summary.json, which it does not declare.")
            found.update(own)
        return found
