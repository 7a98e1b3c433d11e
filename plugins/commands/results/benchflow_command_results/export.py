"""Write finished rollouts in the format of an exporter."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from benchflow_command_results.jobs import finished_rollouts
from benchflow_core.contracts import ExporterSpec, RolloutRecord
from benchflow_core.contracts.common import LoadedPlugin
from benchflow_core.contracts.core import ResultFiles
from benchflow_core.errors import ConfigurationError, PluginFailed

__all__ = ["export_job", "export_rollouts", "stored_rollout"]


def export_job(
    files: ResultFiles, path: Path, exporter: LoadedPlugin, options: Mapping[str, str], output: Path | None
) -> list[Path]:
    """Write one file of lines for the job, or one document per rollout: below `output`, else in its `trainer/`."""
    spec: ExporterSpec = exporter.spec
    rollouts = finished_rollouts(path)
    if not rollouts:
        raise ConfigurationError(f"{path} has no finished rollout.")
    if unknown := sorted(options.keys() - spec.options.keys()):
        known = ", ".join(sorted(spec.options)) or "none"
        raise ConfigurationError(f"the exporter has no option '{unknown[0]}'.", remedy=f"Options: {known}.")
    options = {**spec.options, **options}
    if not spec.lines:
        return list(export_rollouts(files, rollouts, exporter, options, output))
    name = _plain_name(exporter)
    target = path / name if output is None else output / name if output.is_dir() else output
    files.write(target, b"".join(_exported(files, exporter, one, options) for one in rollouts))
    return [target]


def export_rollouts(
    files: ResultFiles,
    rollouts: Sequence[Path],
    exporter: LoadedPlugin,
    options: Mapping[str, str],
    output: Path | None,
) -> Iterator[Path]:
    """Write a document for each rollout, one after the other as they are asked for."""
    for one in rollouts:
        target = (output / one.name if output else one / "trainer") / _plain_name(exporter)
        files.write(target, _exported(files, exporter, one, options))
        yield target


def _exported(files: ResultFiles, exporter: LoadedPlugin, rollout: Path, options: Mapping[str, str]) -> bytes:
    made = exporter.spec.export(stored_rollout(files, rollout), options)
    if not isinstance(made, bytes):
        said = f"{exporter.who}: its export() returned a {type(made).__name__}, not a bytes."
        raise PluginFailed(said, remedy="This is a defect of the plugin.")
    return made


def _plain_name(exporter: LoadedPlugin) -> str:
    """One that leads elsewhere would be written over something else."""
    name: str = exporter.spec.file_name
    if name in ("", ".", "..") or "/" in name or "\0" in name:
        raise PluginFailed(f"{exporter.who} names the file {name!r}, which is no plain name.")
    return name


def stored_rollout(files: ResultFiles, folder: Path) -> RolloutRecord:
    """Return a rollout as exporters and panels get it: `result` is empty while it runs."""
    result = files.read_result(folder) if (folder / "result.json").exists() else None
    events = partial(files.read_lines, folder / "events.jsonl")
    return RolloutRecord(folder, result or {}, files.read_object(folder / "config.json"), events)
