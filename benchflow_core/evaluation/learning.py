"""Continual learning: the rollouts of a job run one after the other over one store of memory and skills."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from benchflow_core.contracts.common import private_folder
from benchflow_core.errors import ConfigurationError
from benchflow_core.evaluation.folders import read_result
from benchflow_core.evaluation.jobfile import Entry
from benchflow_core.results.curve import learning_curve
from benchflow_core.results.files import write_bytes
from benchflow_core.results.learner import LearnerStore, Step
from benchflow_core.rollout.learning import LEARNED
from benchflow_core.settings.models import JobSettings, Learned
from benchflow_core.task.skillset import find_skills, without_cases

__all__ = ["CURVE_FILE", "Learning", "draw_curve", "refuse_unlearnable"]

CURVE_FILE: Final = "learning_curve.svg"


def refuse_unlearnable(config: JobSettings) -> None:
    """What cannot be meant by rollouts that learn from each other."""
    if config.job_mode != "sequential-shared":
        return
    if config.matrix:
        raise ConfigurationError(
            "job_mode: sequential-shared and a matrix: arms that learn from each other cannot be compared.",
            remedy="Run one job per arm.",
        )
    if config.skill_mode in ("with-skill", "self-gen"):
        raise ConfigurationError(
            f"job_mode: sequential-shared brings skills of its own; skill_mode {config.skill_mode} is in its way.",
            remedy="Leave it out; skills_dir names what the store begins with.",
        )


class Learning:
    """The store of one job, and who still has to be offered to it."""

    def __init__(self, job_dir: Path, config: JobSettings) -> None:
        self._job_dir = job_dir
        with private_folder() as staged:
            self.store = LearnerStore.open(job_dir, start=_start(config, staged))

    def now(self) -> Learned:
        """What the next rollout is given."""
        generation = self.store.generation
        return Learned(self.store.current, generation.number, generation.digest)

    def catch_up(self, entries: Sequence[Entry], todo: Sequence[Entry]) -> None:
        """Rollouts that ended before a kill and were not offered any more: what they left is in their folders."""
        waiting = {entry.name for entry in todo}
        for entry in entries:
            if entry.name not in waiting and (result := read_result(self._job_dir, entry.name)) is not None:
                self.take(entry, result)

    def take(self, entry: Entry, result: Mapping[str, Any]) -> Step:
        """Offer a finished rollout."""
        left = self._job_dir / entry.name / LEARNED
        reward = (result.get("rewards") or {}).get("reward")
        task = entry.item.task_path.name
        return self.store.offer(reward, left if left.is_dir() else None, rollout=entry.name, task=task)

    def report(self) -> dict[str, Any]:
        """For the job's summary; draws the curve."""
        draw_curve(self.store, self._job_dir / CURVE_FILE)
        store = self.store
        return {"generations": len(store.generations), "generation": store.head, "best": store.best}


def draw_curve(store: LearnerStore, target: Path) -> None:
    write_bytes(target, learning_curve(store.steps, f"Learning curve of {store.root.resolve().name}").encode())


def _start(config: JobSettings, staged: Path) -> Path | None:
    """The skills that a store begins with."""
    if not config.skills_dir:
        return None
    root = Path(config.skills_dir).expanduser()
    if not (found := find_skills(root)):
        raise ConfigurationError(f"no skill in {root}: a skill is a folder with a SKILL.md.")
    for folder in found:
        name = folder.resolve().name if folder.name in ("", "..") else folder.name
        shutil.copytree(folder, staged / "skills" / name, symlinks=True, ignore=without_cases)
    return staged
