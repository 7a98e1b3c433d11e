"""Find the package that reads results: its commands show them, and it adds statistics to what a job counts itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from benchflow_core.contracts.results import EvaluationResult
from benchflow_core.errors import PluginError
from benchflow_core.plugins import registry
from benchflow_core.plugins.dotted import resolve
from benchflow_core.plugins.index import COMMAND_GROUP
from benchflow_core.plugins.remedies import install_command

__all__ = ["find_reader", "reader_class", "statistics_of"]

DISTRIBUTION: Final = "benchflow-command-results"


def find_reader() -> Any | None:
    """Return the class of the installed `ResultsReader`; `None` where its package is missing or blocked."""
    found = next((p for p in registry().plugins(COMMAND_GROUP) if p.distribution.name == DISTRIBUTION), None)
    if found is None:
        return None
    loaded = registry().get("command", f"{DISTRIBUTION}::{found.name}")
    return resolve(loaded.spec.results, loaded.who)


def reader_class() -> Any:
    """Return the class of the `ResultsReader`. The error says what to install."""
    found = find_reader()
    if found is None:
        why = f"Run: {install_command(DISTRIBUTION)}"
        raise PluginError(f"reading results comes with {DISTRIBUTION}.", remedy=registry().kept_out("command") or why)
    return found


def statistics_of(result: EvaluationResult) -> Mapping[str, Any]:
    """Return what the installed reader adds to the counts of rollouts; nothing where there is none."""
    reader = find_reader()
    return reader.statistics(result) if reader else {}
