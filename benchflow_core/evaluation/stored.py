"""The files of jobs and rollouts as a `ResultsReader` needs them: `ResultFiles` of the contract, carried out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

from benchflow_core.contracts.results import EvaluationResult, ResultsReader
from benchflow_core.plugins import Loaded, registry
from benchflow_core.results.checked import NotAResult, read_object, read_result, unreadable
from benchflow_core.results.files import read_jsonl, write_bytes, write_json
from benchflow_core.results.models import COLUMN, marked
from benchflow_core.results.reader import reader_class
from benchflow_core.results.redact import Cleaner

__all__ = ["StoredFiles", "results_reader"]


def results_reader() -> ResultsReader:
    """Return the installed reader of results. The error says what to install."""
    reader: ResultsReader = reader_class()(StoredFiles())
    return reader


class StoredFiles:
    """Calls the module that knows; what reading a result does not need is imported when it is asked for."""

    def read_result(self, folder: Path) -> dict[str, Any] | None:
        try:
            return read_result(folder)
        except NotAResult:
            return None
        except (OSError, ValueError, RecursionError) as error:
            return unreadable(folder, str(error) or type(error).__name__)

    def columns(self) -> list[str]:
        return marked(COLUMN)

    def read_object(self, path: Path) -> dict[str, Any]:
        return read_object(path)

    def read_lines(self, path: Path) -> Iterable[dict[str, Any]]:
        return read_jsonl(path)

    def write(self, path: Path, data: bytes) -> None:
        write_bytes(path, data)

    def write_json(self, path: Path, value: Any) -> None:
        write_json(path, value)

    def hide(self, data: bytes) -> bytes:
        return self._clean(data)

    @cached_property
    def _clean(self) -> Cleaner:
        from benchflow_core.dotenv import user_env
        from benchflow_core.results.redact import Redactor

        env = user_env()
        return Cleaner(Redactor.from_env(env), env.get("HOME"))

    def cache_dir(self) -> Path:
        from benchflow_core.dotenv import user_env
        from benchflow_core.results.layout import cache_dir

        return cache_dir(user_env())

    def summarize(
        self,
        name: str,
        results: Iterable[Mapping[str, Any]],
        planned: int | None = None,
        seconds: float = 0.0,
        folder: Path | None = None,
        arms: Mapping[str, int] | None = None,
    ) -> EvaluationResult:
        from benchflow_core.evaluation.summary import summarize

        return summarize(name, results, planned, seconds, folder, arms)

    def default_settings(self) -> Mapping[str, Any]:
        from benchflow_core.settings.models import empty_rollout
        from benchflow_core.settings.written import recorded

        return recorded(empty_rollout())

    def treatments(self) -> frozenset[str]:
        from benchflow_core.settings.written import recorded_treatments

        return recorded_treatments()

    @contextmanager
    def lock_of(self, job: Path) -> Iterator[None]:
        from benchflow_core.evaluation.joblock import JobLock

        lock = JobLock(job)
        try:
            yield
        finally:
            lock.release()

    def is_running(self, job: Path) -> bool:
        from benchflow_core.evaluation.joblock import owner_of

        return owner_of(job) is not None

    def plugins(self, kind: str) -> Sequence[Loaded]:
        return registry().all(kind)
