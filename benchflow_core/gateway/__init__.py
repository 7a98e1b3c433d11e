"""Wiring of models: which gateway carries which model to whom, keys, endpoints into the box, the record of it all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchflow_core.lazy import names_of

if TYPE_CHECKING:
    from benchflow_core.gateway.choose import Chosen
    from benchflow_core.gateway.failures import failure_of, turn_failure, turn_verdict
    from benchflow_core.gateway.models import GatewayUse, IssuedModel, Models, Purpose
    from benchflow_core.gateway.probing import probe
    from benchflow_core.gateway.recordings import find_recording, recording_of, write_recording
    from benchflow_core.gateway.resolve import WIRES
    from benchflow_core.gateway.trajectory import write_llm_trajectory

__all__ = [
    "WIRES",
    "Chosen",
    "GatewayUse",
    "IssuedModel",
    "Models",
    "Purpose",
    "failure_of",
    "find_recording",
    "probe",
    "recording_of",
    "turn_failure",
    "turn_verdict",
    "write_llm_trajectory",
    "write_recording",
]

__getattr__ = names_of(
    __name__,
    {
        "choose": "Chosen",
        "failures": "failure_of turn_failure turn_verdict",
        "models": "GatewayUse IssuedModel Models Purpose",
        "probing": "probe",
        "recordings": "find_recording recording_of write_recording",
        "resolve": "WIRES",
        "trajectory": "write_llm_trajectory",
    },
)
