"""`job.json`: the plan of a job, written before anything starts. Resuming reads it, and compares.

It names every rollout in its order, the seed, the settings, the digest of every task and the version of everything that
takes part. Results are plain files beside it; which of them exist is never written here.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from functools import lru_cache
from pathlib import Path
from typing import Any

from benchflow_core import __version__
from benchflow_core.errors import ConfigurationError
from benchflow_core.evaluation.items import Item
from benchflow_core.evaluation.schedule import in_order
from benchflow_core.quick import dataclass
from benchflow_core.results.clock import now
from benchflow_core.results.files import read_json, to_json_text, write_bytes
from benchflow_core.results.layout import rollout_name
from benchflow_core.results.redact import MARK, Redactor
from benchflow_core.settings.models import JobSettings
from benchflow_core.settings.written import code_in, dump, read

__all__ = ["JOB_FILE", "Entry", "JobRecord"]

JOB_FILE = "job.json"
JOB_VERSION = "1.0"

_FOLDER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")
Key = tuple[str, int, str | None]


@dataclass(slots=True)
class Entry:
    """One rollout of a job: its place in the order, its folder, and how often it was tried."""

    order: int
    name: str
    item: Item
    attempt: int = 1
    failures: int = 0
    """Attempts that ended in an error worth another."""
    image: str = ""


@dataclass
class JobRecord:
    """What `job.json` holds."""

    job_name: str
    seed: int
    config: dict[str, Any]
    tasks: dict[str, str | None]
    """Absolute path to digest; none for a task that could not be loaded."""
    items: list[dict[str, Any]]
    """In the order in which they run, which is shuffled: the arms have theirs in `arms`."""
    requirements: list[str]
    """`dist==version` of core and plugins, and `agent NAME==VERSION`."""
    code: list[str] = field(default_factory=list)
    """Settings that are Python code: whoever goes on with the job has to bring them again."""
    cwd: str = field(default_factory=os.getcwd)
    created_at: str = field(default_factory=now)
    drift: list[dict[str, Any]] = field(default_factory=list)
    """What was different when it was resumed, and when."""
    arms: list[str] = field(default_factory=list)
    """As the matrix gives them; the first is what the others are compared with."""
    schema_version: str = JOB_VERSION

    @classmethod
    def new(cls, job_name: str, config: JobSettings, items: Sequence[Item], *, shuffled: bool = True) -> JobRecord:
        record = cls(job_name, config.seed, dump(config), _digests(items), [], _requirements(items), code_in(config))
        record.arms = [arm.name for arm in config.arms()]
        record.add(items, shuffled=shuffled)
        return record

    def add(self, items: Sequence[Item], *, shuffled: bool = True) -> None:
        """Put rollouts that are not in it yet behind those that are. Not `shuffled`: their order means something."""
        have = {_row_key(row) for row in self.items}
        taken = {row["rollout"] for row in self.items}
        fresh = [item for item in items if _key(item) not in have]
        if shuffled:
            fresh = in_order(
                fresh, self.seed, task=lambda i: str(i.task_path), arm=lambda i: i.arm, trial=lambda i: i.trial
            )
        for item in fresh:
            name = _free_name(item.task_path.name, taken)
            task, trial, arm = _key(item)
            self.items.append({"rollout": name, "task": task, "trial": trial, "arm": arm})

    def entries(self, items: Iterable[Item]) -> list[Entry]:
        """The planned items in their order; each has a row by now."""
        by_key = {_key(item): item for item in items}
        return [
            Entry(order, row["rollout"], by_key[_row_key(row)])
            for order, row in enumerate(self.items)
            if _row_key(row) in by_key
        ]

    def drifted(self, items: Sequence[Item]) -> list[str]:
        """What is different now: core, plugins, agents, tasks."""
        before, after = set(self.requirements), set(_requirements(items))
        found = [f"{name} is no longer in use" for name in sorted(before - after)]
        found += [f"{name} is new" for name in sorted(after - before)]
        digests = _digests(items)
        for path, digest in self.tasks.items():
            if path not in digests:
                found.append(f"task {path} is gone")
            elif digests[path] != digest:
                found.append(f"task {Path(path).name} changed")
        return found

    def settle(self, changes: Sequence[str], items: Sequence[Item]) -> None:
        """From now on, as it is now; the change stays on the record."""
        self.drift.append({"at": now(), "changes": list(changes)})
        self.requirements, self.tasks = _requirements(items), _digests(items)

    def settings(self, env: Mapping[str, str]) -> JobSettings:
        if MARK in to_json_text(self.config):
            raise ConfigurationError(
                "the settings of this job held a secret, which is not written down.",
                remedy="Start a new job; give secrets with --agent-env, by a name that says so.",
            )
        return read(JobSettings, self.config, env, JOB_FILE)

    def write(self, job_dir: Path, redactor: Redactor) -> None:
        text = redactor.json_text(to_json_text(vars(self)), to_json_text)
        write_bytes(job_dir / JOB_FILE, text.encode("utf-8", "replace"))

    @classmethod
    def read(cls, job_dir: Path) -> JobRecord:
        path = job_dir / JOB_FILE
        try:
            record = cls(**read_json(path))
            record._refuse_edited()
            return record
        except FileNotFoundError:
            raise ConfigurationError(
                f"{job_dir} has no {JOB_FILE}: it is not the folder of a job.",
                remedy="Name the folder that bench eval create printed, such as jobs/2026-11-16__05-25-16.",
            ) from None
        except (OSError, ValueError, TypeError) as error:
            raise ConfigurationError(f"{path} cannot be read: {error}.") from error

    def _refuse_edited(self) -> None:
        """It may come from somebody else, or from an editor: a rollout's name is a folder that is written to."""
        if not isinstance(self.config, dict) or not isinstance(self.tasks, dict) or not isinstance(self.items, list):
            raise ValueError("'config' and 'tasks' must be mappings, and 'items' a list")
        for row in self.items:
            name = row.get("rollout") if isinstance(row, dict) else None
            if not isinstance(name, str) or not _FOLDER.fullmatch(name):
                raise ValueError(f"{name!r} is not the name of a rollout")
            if row.get("task") not in self.tasks or not isinstance(row.get("trial"), int) or "arm" not in row:
                raise ValueError(f"rollout {name} is of no task of this job")
        if not self.items:
            raise ValueError("it names no rollout")


@lru_cache(maxsize=65536)
def _absolute(path: Path) -> str:
    return str(path.resolve())


def _key(item: Item) -> Key:
    return _absolute(item.task_path), item.trial, item.arm


def _row_key(row: Mapping[str, Any]) -> Key:
    return row["task"], row["trial"], row["arm"]


def _free_name(task: str, taken: set[str]) -> str:
    name = rollout_name(task)
    while name in taken:
        name = f"{rollout_name(task)}{secrets.token_hex(2)}"
    taken.add(name)
    return name


def _digests(items: Iterable[Item]) -> dict[str, str | None]:
    found: dict[str, str | None] = {}
    for item in items:
        if item.trial == 1:
            found[_absolute(item.task_path)] = item.plan.digest if item.plan else None
    return found


def _requirements(items: Iterable[Item]) -> list[str]:
    found = {f"benchflow-core=={__version__}"}
    for plan in {id(i.plan): i.plan for i in items if i.plan is not None}.values():
        found |= {f"{p['distribution']}=={p['version']}" for p in plan.plugins() if p["distribution"]}
        for name, agent in plan.agents.items():
            layers = "+".join(layer.key for layer in agent.spec.layers)
            found.add(f"agent {name}=={agent.spec.version or '-'}{f' ({layers})' if layers else ''}")
    return sorted(found)
