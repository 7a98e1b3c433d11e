"""The Google Drive service, as BenchFlow starts it."""

from __future__ import annotations

from benchflow_claw_kit.spec import claw_spec

from benchflow_core.contracts import ServiceSpec
from benchflow_core.hookspecs import hookimpl

__all__ = ["benchflow_service"]


@hookimpl
def benchflow_service() -> ServiceSpec:
    return claw_spec("gdrive", 9005, "mock Google Drive API")
