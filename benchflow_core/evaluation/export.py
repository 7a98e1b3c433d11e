"""Finished rollouts in the format of an exporter."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from benchflow_core.contracts.exporters import ExporterSpec, RolloutRecord
from benchflow_core.errors import ConfigurationError
from benchflow_core.results.files import read_json, read_jsonl, write_bytes
from benchflow_core.results.index import find_jobs
from benchflow_core.results.layout import RolloutDir

__all__ = ["export_job", "stored_rollout"]


def export_job(path: Path, spec: ExporterSpec, options: Mapping[str, str], output: Path | None) -> list[Path]:
    """One file of lines for the whole job, or one document per rollout: below `output`, else in its `trainer/`."""
    rollouts = [Path(job.path, name) for job in find_jobs(path) for name in job.rollouts]
    if not rollouts:
        raise ConfigurationError(f"{path} has no finished rollout.")
    if unknown := sorted(options.keys() - spec.options.keys()):
        known = ", ".join(sorted(spec.options)) or "none"
        raise ConfigurationError(f"the exporter has no option '{unknown[0]}'.", remedy=f"Options: {known}.")
    if spec.lines:
        target = _target(output, path, spec.file_name)
        write_bytes(target, b"".join(spec.export(stored_rollout(one), options) for one in rollouts))
        return [target]
    return list(_documents(rollouts, spec, options, output))


def _documents(
    rollouts: list[Path], spec: ExporterSpec, options: Mapping[str, str], output: Path | None
) -> Iterator[Path]:
    for one in rollouts:
        target = (output / one.name if output else one / "trainer") / spec.file_name
        write_bytes(target, spec.export(stored_rollout(one), options))
        yield target


def _target(output: Path | None, path: Path, file_name: str) -> Path:
    if output is None:
        return path / file_name
    return output / file_name if output.is_dir() else output


def stored_rollout(folder: Path) -> RolloutRecord:
    """As exporters get it."""
    files = RolloutDir(folder)
    config: dict[str, Any] = read_json(files.config) if files.config.is_file() else {}
    return RolloutRecord(folder, read_json(files.result), config, partial(read_jsonl, files.events))
