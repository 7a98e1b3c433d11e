"""Wiring of models: which gateway carries which model to whom, keys, endpoints into the box, the record of it all."""

from benchflow_core.gateway.failures import failure_of, turn_failure, turn_verdict
from benchflow_core.gateway.models import IssuedModel, Models, Purpose
from benchflow_core.gateway.probing import probe
from benchflow_core.gateway.resolve import WIRES, resolve_model
from benchflow_core.gateway.trajectory import write_llm_trajectory

__all__ = [
    "WIRES",
    "IssuedModel",
    "Models",
    "Purpose",
    "failure_of",
    "probe",
    "resolve_model",
    "turn_failure",
    "turn_verdict",
    "write_llm_trajectory",
]
