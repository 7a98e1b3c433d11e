"""The plugin: the format's name and its file."""

from __future__ import annotations

from collections.abc import Mapping

from benchflow_core.contracts import ExporterSpec, RolloutRecord
from benchflow_core.hookspecs import hookimpl


def export(record: RolloutRecord, options: Mapping[str, str]) -> bytes:
    from {{module}}.lines import to_line

    return to_line(record)


@hookimpl
def benchflow_exporter() -> ExporterSpec:
    return ExporterSpec(summary="one JSON line per rollout", file_name="{{name}}.jsonl", export=export, lines=True)
