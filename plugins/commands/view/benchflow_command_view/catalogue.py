"""What was opened, and the names it goes by in addresses. Nothing outside of it can be asked for."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchflow_core.contracts import ResultsReader
from benchflow_core.errors import ConfigurationError

__all__ = ["JobCatalogue", "JobPlace", "is_rollout", "safe"]

_FRESH = 2.0
"""Seconds for which the list of jobs is taken as it was."""
ATTEMPTS = "attempts"


def safe(name: str) -> str:
    """A name for an address and for a file: never a separator, never a dot alone."""
    plain = re.sub(r"[^A-Za-z0-9._-]", "~", name)
    return plain if plain.strip(".") else f"~{plain}"


def is_rollout(path: Path) -> bool:
    """Finished, running, or of an older version: a trajectory is enough."""
    if (path / "events.jsonl").is_file() or (path / "trajectory").is_dir():
        return True
    return (path / "result.json").is_file() and not (path / "job.json").exists()


@dataclass(frozen=True)
class JobPlace:
    """A job, or some of its rollouts."""

    path: Path
    only: frozenset[str] | None = None
    """Names of the rollouts that were opened; `None`: all."""

    def rollout(self, rid: str) -> Path:
        """The folder of a rollout, or of an earlier attempt. Raises `KeyError`."""
        if safe(rid) != rid:
            raise KeyError(rid)
        for parent in (self.path, self.path / ATTEMPTS):
            name = rid if _plain_folder(parent / rid) else _named(parent, rid)
            if name is not None and (self.only is None or name.rpartition(".")[0] in self.only or name in self.only):
                return parent / name
        raise KeyError(rid)


def _plain_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _named(parent: Path, rid: str) -> str | None:
    if "~" not in rid or not parent.is_dir():
        return None
    return next((p.name for p in parent.iterdir() if safe(p.name) == rid and _plain_folder(p)), None)


class JobCatalogue:
    """The paths given on the command line."""

    def __init__(self, reader: ResultsReader, paths: Sequence[Path]) -> None:
        self._reader, self._paths = reader, [path.resolve() for path in paths]
        self.session = self._paths[0] if self._paths[0].is_file() else None
        self._found: dict[str, JobPlace] = {}
        self._looked = float("-inf")
        if self.session and len(self._paths) > 1:
            raise ConfigurationError("a session file is opened by itself.", remedy="Name one file, or folders.")
        if not self.session and not self.jobs():
            raise ConfigurationError(
                f"{paths[0]} holds no job and no rollout.",
                remedy="Name a job, a rollout, a folder of jobs, or a session file of an agent.",
            )

    @property
    def opens(self) -> str:
        """The address of the first page."""
        if self.session:
            return f"/rollout/session/{safe(self.session.name)}"
        jobs = self.jobs()
        first, place = next(iter(jobs.items()))
        if len(self._paths) > 1 and len(jobs) > 1:
            return f"/compare/{'+'.join(jobs)}"
        if len(jobs) > 1:
            return "/jobs"
        if place.only and len(place.only) == 1:
            return f"/rollout/{first}/{safe(next(iter(place.only)))}"
        return f"/job/{first}"

    @property
    def title(self) -> str:
        return ", ".join(path.name or str(path) for path in self._paths[:3])

    def jobs(self) -> dict[str, JobPlace]:
        """By the name in addresses."""
        if self.session is None and time.monotonic() - self._looked > _FRESH:
            found: dict[str, JobPlace] = {}
            for path in self._paths:
                for name, place in self._below(path):
                    self._add(found, name, place)
            self._found, self._looked = found, time.monotonic()
        return self._found

    def _below(self, path: Path) -> list[tuple[str, JobPlace]]:
        if is_rollout(path):
            parent = path.parent.parent if path.parent.name == ATTEMPTS else path.parent
            return [(parent.name, JobPlace(parent, frozenset({path.name})))]
        places = []
        for folder in self._reader.folders(path):
            inside = folder.relative_to(path).as_posix()
            places.append((folder.name if inside == "." else inside, JobPlace(folder)))
        return places

    def _add(self, found: dict[str, JobPlace], name: str, place: JobPlace) -> None:
        jid, number = safe(name), 1
        while jid in found and found[jid].path != place.path:
            number += 1
            jid = f"{safe(name)}~{number}"
        before = found.get(jid)
        if before and before.only and place.only:
            place = JobPlace(place.path, before.only | place.only)
        found[jid] = place

    def job(self, jid: str) -> JobPlace:
        """Without looking for others, where it is known already."""
        known = self._found.get(jid)
        return known if known is not None and known.path.is_dir() else self.jobs()[jid]
