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


def reader_class() -> Any:
    """Return the class of the installed `ResultsReader`. The error says what to install, or what is wrong with it."""
    found = next((p for p in registry().plugins(COMMAND_GROUP) if p.distribution.name == DISTRIBUTION), None)
    if found is None:
        remedy = registry().kept_out("command") or f"Run: {install_command(DISTRIBUTION)}"
        raise PluginError(f"reading results comes with {DISTRIBUTION}.", remedy=remedy)
    loaded = registry().get("command", f"{DISTRIBUTION}::{found.name}")
    return resolve(loaded.spec.results, loaded.who)


def find_reader() -> Any | None:
    """Return the same, or `None`: a job needs no reader, and one that is broken costs it nothing."""
    try:
        return reader_class()
    except PluginError:
        return None


def statistics_of(result: EvaluationResult) -> Mapping[str, Any]:
    """Return what the installed reader adds to the counts of rollouts; nothing where there is none."""
    reader = find_reader()
    return reader.statistics(result) if reader else {}
