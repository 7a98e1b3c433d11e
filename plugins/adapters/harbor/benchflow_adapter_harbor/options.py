"""What a task may tell us alone, in `[metadata.benchflow]`: the other runners keep and ignore it."""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping
from dataclasses import fields
from typing import Annotated, Any

from benchflow_adapter_harbor.readers import one_of, optional, reader_of
from benchflow_adapter_harbor.report import Report, Where
from benchflow_core.contracts.quick import dataclass


@dataclass(frozen=True, slots=True)
class TaskOptions:
    allow_substitute: bool = False
    """The task also runs on another file system than its image's."""
    isolation: Annotated[Any, optional(one_of("fresh", "shared", "separate"))] = None
    """`shared` where the verifier needs the agent's live processes and files together."""
    keep_changes: tuple[str, ...] = ()
    """Programs or libraries the agent is meant to change."""


_read = reader_of(TaskOptions)
_NAMES = frozenset(one.name for one in fields(TaskOptions))


def read_options(
    metadata: Mapping[str, Any], report: Report, *, inline: Mapping[str, Any] | None = None
) -> TaskOptions:
    """From the metadata, or from the `benchflow` block of a `task.md`. An unknown key here is a mistake."""
    strict = Report(report.file, report.line_of, strict=True)
    where: Where = ("metadata", "benchflow")
    data = metadata.get("benchflow", {})
    if inline is not None:
        own = {key: value for key, value in inline.items() if key in _NAMES}
        if own:
            where, data = ("benchflow",), own
    found = _read(data, where, strict)
    report.problems.extend(strict.problems)
    return found if isinstance(found, TaskOptions) else TaskOptions()


def plain(value: Any) -> Any:
    """Free data as JSON has it: dates become text, and so do numbers JSON does not know."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if isinstance(value, str | int | float) or value is None else str(value)
