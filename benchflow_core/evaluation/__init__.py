"""A job: plan, schedule, run, aggregate."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from benchflow_core.evaluation.config import EvaluationConfig, RetryConfig
    from benchflow_core.evaluation.job import Evaluation
    from benchflow_core.evaluation.summary import EvaluationResult

__all__ = ["Evaluation", "EvaluationConfig", "EvaluationResult", "RetryConfig"]

_MODULES = {"EvaluationConfig": "config", "RetryConfig": "config", "Evaluation": "job", "EvaluationResult": "summary"}


def __getattr__(name: str) -> Any:
    """On first use: reading results needs nothing of what runs them."""
    from importlib import import_module

    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
