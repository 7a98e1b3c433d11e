"""A job: plan, schedule, run, aggregate. Reading results needs nothing of what runs them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchflow_core.lazy import names_of

if TYPE_CHECKING:
    from benchflow_core.evaluation.job import Evaluation
    from benchflow_core.evaluation.summary import EvaluationResult
    from benchflow_core.settings.models import EvaluationConfig, RetryConfig

__all__ = ["Evaluation", "EvaluationConfig", "EvaluationResult", "RetryConfig"]

__getattr__ = names_of(
    __name__,
    {
        "benchflow_core.settings.models": "EvaluationConfig RetryConfig",
        "job": "Evaluation",
        "summary": "EvaluationResult",
    },
)
