"""Finished rollouts in the format of an exporter."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from benchflow_core.contracts.events import ObserverSpec, RolloutFinished
from benchflow_core.contracts.exporters import ExporterSpec, RolloutRecord
from benchflow_core.errors import ConfigurationError, PluginFailed
from benchflow_core.plugins import Loaded
from benchflow_core.plugins.guard import wrong_type
from benchflow_core.results.checked import read_object, readable_result
from benchflow_core.results.files import read_jsonl, write_bytes
from benchflow_core.results.index import find_jobs
from benchflow_core.results.layout import RolloutDir

__all__ = ["automatic_exports", "export_job", "stored_rollout"]


def automatic_exports(exporters: Sequence[Loaded]) -> list[Loaded]:
    """Exporters that write beside every rollout, as observers of its end: what one does wrong stays its own."""
    found = []
    for exporter in exporters:
        if exporter.spec.automatic:
            watch = ObserverSpec(exporter.spec.summary, partial(_beside, exporter), events=(RolloutFinished,))
            found.append(replace(exporter, spec=watch))
    return found


def _beside(exporter: Loaded, event: Any) -> None:
    for _ in _documents([event.rollout.dir], exporter, exporter.spec.options, None):
        continue


def export_job(path: Path, exporter: Loaded, options: Mapping[str, str], output: Path | None) -> list[Path]:
    """One file of lines for the whole job, or one document per rollout: below `output`, else in its `trainer/`."""
    spec: ExporterSpec = exporter.spec
    rollouts = [Path(job.path, name) for job in find_jobs(path) for name in job.rollouts]
    if not rollouts:
        raise ConfigurationError(f"{path} has no finished rollout.")
    if unknown := sorted(options.keys() - spec.options.keys()):
        known = ", ".join(sorted(spec.options)) or "none"
        raise ConfigurationError(f"the exporter has no option '{unknown[0]}'.", remedy=f"Options: {known}.")
    options = {**spec.options, **options}
    if spec.lines:
        target = _target(output, path, _plain_name(exporter))
        write_bytes(target, b"".join(_exported(exporter, one, options) for one in rollouts))
        return [target]
    return list(_documents(rollouts, exporter, options, output))


def _documents(
    rollouts: list[Path], exporter: Loaded, options: Mapping[str, str], output: Path | None
) -> Iterator[Path]:
    for one in rollouts:
        target = (output / one.name if output else one / "trainer") / _plain_name(exporter)
        write_bytes(target, _exported(exporter, one, options))
        yield target


def _exported(exporter: Loaded, rollout: Path, options: Mapping[str, str]) -> bytes:
    made = exporter.spec.export(stored_rollout(rollout), options)
    if not isinstance(made, bytes):
        raise wrong_type(exporter.who, "export", made, bytes)
    return made


def _plain_name(exporter: Loaded) -> str:
    """One that leads elsewhere would be written over something else."""
    name: str = exporter.spec.file_name
    if name in ("", ".", "..") or "/" in name or "\0" in name:
        raise PluginFailed(f"{exporter.who} names the file {name!r}, which is no plain name.")
    return name


def _target(output: Path | None, path: Path, file_name: str) -> Path:
    if output is None:
        return path / file_name
    return output / file_name if output.is_dir() else output


def stored_rollout(folder: Path) -> RolloutRecord:
    """As exporters get it."""
    files = RolloutDir(folder)
    config = read_object(files.config)
    return RolloutRecord(folder, readable_result(folder), config, partial(read_jsonl, files.events))
