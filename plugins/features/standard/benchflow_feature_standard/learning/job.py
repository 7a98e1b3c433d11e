"""The job's part: every rollout starts from what is known by then, and what it leaves is offered to the store."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchflow_core.contracts import FeatureJob, FinishedRollout, private_folder
from benchflow_feature_standard.learning.curve import draw_curve
from benchflow_feature_standard.learning.run import LEARNED
from benchflow_feature_standard.learning.store import LearnerStore
from benchflow_feature_standard.skills.folders import named, required_skills, without_cases

__all__ = ["LearningJob"]


class LearningJob(FeatureJob):
    """The store of one job."""

    sequential = True

    def __init__(self, settings: Mapping[str, Any], job_dir: Path, earlier: Sequence[FinishedRollout]) -> None:
        with private_folder() as staged:
            self.store = LearnerStore.open(job_dir, start=_start(settings["skills_dir"], staged))
        for done in earlier:  # ended before a kill, and perhaps not offered any more
            self.finished(done)

    def next(self) -> Mapping[str, Any]:
        now = self.store.generation
        given = {"folder": str(self.store.current), "generation": now.number, "digest": now.digest}
        return {"skills_dir": None, LEARNED: given}

    def finished(self, done: FinishedRollout) -> Mapping[str, Any]:
        left = done.folder / LEARNED
        return asdict(self.store.offer(done.reward, left if left.is_dir() else None, rollout=done.name, task=done.task))

    def summary(self) -> Mapping[str, Any]:
        store = self.store
        draw_curve(store)
        return {LEARNED: {"generations": len(store.generations), "generation": store.head, "best": store.best}}


def _start(skills_dir: str | None, staged: Path) -> Path | None:
    """Copy the skills that a store begins with."""
    if not skills_dir:
        return None
    for name, folder in named(required_skills(Path(skills_dir).expanduser())).items():
        shutil.copytree(folder, staged / "skills" / name, symlinks=True, ignore=without_cases)
    return staged
