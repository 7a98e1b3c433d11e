"""The plugin: an exporter that also adds panels to `bench view`."""

from __future__ import annotations

from collections.abc import Mapping

from benchflow_core.contracts import ExporterSpec, JobResults, Panel, RolloutRecord
from benchflow_core.hookspecs import hookimpl


def export(record: RolloutRecord, options: Mapping[str, str]) -> bytes:
    from benchflow_command_results.tool_calls.calls import lines

    return lines(record)


def panel(record: RolloutRecord) -> Panel | None:
    from benchflow_command_results.tool_calls.panels import rollout_panel

    return rollout_panel(record)


def job_panel(job: JobResults) -> Panel | None:
    from benchflow_command_results.tool_calls.panels import job_panel

    return job_panel(job)


@hookimpl
def benchflow_exporter() -> ExporterSpec:
    return ExporterSpec(
        summary="tool calls, one line each",
        file_name="tool-calls.jsonl",
        export=export,
        lines=True,
        panel=panel,
        job_panel=job_panel,
    )
