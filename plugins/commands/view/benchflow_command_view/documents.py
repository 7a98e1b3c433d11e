"""Every page is made of a few JSON documents. The server answers with them; an export is all of them, written down."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from inspect import signature
from pathlib import Path
from threading import Lock
from typing import Any

from benchflow_command_view import job_page, rollout_page
from benchflow_command_view.catalogue import JobCatalogue, JobPlace
from benchflow_command_view.compare_page import compare_document
from benchflow_command_view.files import read_file
from benchflow_command_view.panels import panels_document
from benchflow_command_view.steps.page import PAGE
from benchflow_command_view.steps.source import StepSource
from benchflow_core.contracts import JobResults, ResultsReader
from benchflow_core.errors import BenchflowError

__all__ = ["Documents"]

Document = dict[str, Any]
_SOURCES = 6
"""Trajectories that are kept open; the one unused for longest is put away."""
_JOBS = 8


class Documents:
    """By key: `job/ID`, `rollout/ID/ID`, `steps/ID/ID/PAGE` and so on. `KeyError`: there is no such thing."""

    def __init__(self, reader: ResultsReader, catalogue: JobCatalogue, patience: float = float("inf")) -> None:
        """`patience`: seconds after which a page shows what there is so far of a trajectory."""
        self.reader, self.catalogue, self.patience = reader, catalogue, patience
        self._sources: OrderedDict[Path, StepSource] = OrderedDict()
        self._jobs: OrderedDict[Path, tuple[Any, Document]] = OrderedDict()
        self._making: dict[Path, Lock] = {}
        self._lock = Lock()
        self._makers: dict[str, Callable[..., Document]] = {
            "index": self.index,
            "jobs": self.jobs,
            "job": self.job,
            "rollout": self.rollout,
            "steps": self.steps,
            "step": self.step,
            "traffic": self.traffic,
            "file": self.file,
            "panels": self.panels,
            "compare": self.compare,
        }

    def get(self, key: str) -> Document:
        kind, *names = key.split("/")
        maker = self._makers[kind]
        try:
            signature(maker).bind(*names)
        except TypeError as error:
            raise KeyError(key) from error
        try:
            return maker(*names)
        except FileNotFoundError as error:
            raise KeyError(key) from error

    def index(self) -> Document:
        from importlib.metadata import version

        opened = {"title": self.catalogue.title, "opens": self.catalogue.opens}
        return {**opened, "version": version("benchflow-command-view"), "jobs": len(self.catalogue.jobs())}

    # --- jobs -------------------------------------------------------------------------------------------------

    def read_job(self, place: JobPlace) -> JobResults:
        try:
            return self.reader.job(place.path)
        except BenchflowError:
            return JobResults(place.path, place.path.name, [], [], {}, finished=False, running=False)

    def job(self, jid: str) -> Document:
        place = self.catalogue.job(jid)
        with self._lock:
            making = self._making.setdefault(place.path, Lock())
        with making:  # whoever asks meanwhile gets what is being made
            return self._job(jid, place)

    def _job(self, jid: str, place: JobPlace) -> Document:
        mark = job_page.mark_of(place.path)
        with self._lock:
            if place.path in self._jobs and self._jobs[place.path][0] == mark:
                self._jobs.move_to_end(place.path)
                return self._jobs[place.path][1]
        document = job_page.job_document(jid, self.read_job(place), place.only)
        if not document["running"] and place.only is None:
            with self._lock:
                self._jobs[place.path] = (mark, document)
                while len(self._jobs) > _JOBS:
                    self._jobs.popitem(last=False)
        return document

    def jobs(self) -> Document:
        return {"jobs": [self._brief(jid) for jid in self.catalogue.jobs()]}

    def _brief(self, jid: str) -> Document:
        try:
            document = self.job(jid)
        except (BenchflowError, OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            return {"id": jid, "name": jid, "broken": str(error)[:500]}
        return {key: value for key, value in document.items() if key not in ("columns", "rows")}

    def compare(self, names: str) -> Document:
        places = {jid: self.catalogue.job(jid) for jid in names.split("+")}
        return compare_document(self.reader, {jid: (p.path, self.read_job(p)) for jid, p in places.items()})

    # --- rollouts ---------------------------------------------------------------------------------------------

    def folder(self, jid: str, rid: str) -> Path:
        """Of a rollout; of a session, the file."""
        if self.catalogue.session is not None:
            if jid != "session":
                raise KeyError(jid)
            return self.catalogue.session
        return self.catalogue.job(jid).rollout(rid)

    def source(self, folder: Path, seconds: float = float("inf")) -> StepSource:
        """Read as far as the log has come, or as far as one comes in so many seconds."""
        with self._lock:
            source = self._sources.get(folder)
            if source is None:
                source = self._sources[folder] = _open(folder)
            self._sources.move_to_end(folder)
            while len(self._sources) > _SOURCES:
                self._sources.popitem(last=False)  # its file goes with the last who reads it
        source.refresh(finished=folder.is_file() or (folder / "result.json").exists(), seconds=seconds)
        return source

    def rollout(self, jid: str, rid: str) -> Document:
        folder = self.folder(jid, rid)
        source = self.source(folder, self.patience)
        if folder.is_file():
            return rollout_page.session_document(rid, folder, source)
        return rollout_page.rollout_document(self.reader, jid, rid, folder, source)

    def steps(self, jid: str, rid: str, page: str) -> Document:
        number, folder = _number(page), self.folder(jid, rid)
        source = self.source(folder, 0.0)
        if (number + 1) * PAGE > len(source.store) and not source.complete:
            source = self.source(folder, self.patience)
        if number >= source.pages and not source.complete:
            source = self.source(folder)
        if number >= max(source.pages, 1):
            raise KeyError(page)
        return {"steps": source.page(number), "count": len(source.store)}

    def step(self, jid: str, rid: str, number: str) -> Document:
        source = self.source(self.folder(jid, rid))
        if _number(number) >= len(source.store):
            raise KeyError(number)
        return source.step(_number(number))

    def traffic(self, jid: str, rid: str, number: str) -> Document:
        return self.source(self.folder(jid, rid)).traffic.get(_number(number))

    def file(self, jid: str, rid: str, wanted: str) -> Document:
        folder = self.folder(jid, rid)
        if folder.is_file():
            raise KeyError(wanted)
        return read_file(folder, wanted)

    def panels(self, jid: str, rid: str | None = None) -> Document:
        if self.catalogue.session is not None:
            return {"panels": []}
        if rid is None:
            return panels_document(partial(self.reader.panels, self.read_job(self.catalogue.job(jid))))
        return panels_document(partial(self.reader.panels, self.reader.rollout(self.folder(jid, rid))))


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 12):
        raise KeyError(text)
    return int(text)


def _open(folder: Path) -> StepSource:
    if folder.is_file():
        return StepSource(folder)
    traffic = folder / "trajectory" / "llm_trajectory.jsonl"
    log = folder / "events.jsonl"
    older = folder / "trajectory" / "acp_trajectory.jsonl"
    return StepSource(older if not log.exists() and older.exists() else log, traffic)
