"""The former place of the conformance kit, which is `benchflow_testing_kit` now."""

from __future__ import annotations

from typing import Any

from benchflow_core.lazy import moved

_KINDS = (
    "Adapter", "Agent", "Command", "Driver", "Environment", "Executor", "Exporter", "Gateway", "Observer", "Plugin",
    "Sandbox", "Service", "Source", "Verifier",
)  # fmt: skip
_NAMES = [*(f"{kind}Conformance" for kind in _KINDS), "RecordedEpisode", "VerifierCase", "xfail"]


def __getattr__(name: str) -> Any:
    if name not in _NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return moved(__name__, name, "benchflow_testing_kit")


def __dir__() -> list[str]:
    return _NAMES
