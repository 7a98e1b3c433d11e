"""A job: plan, schedule, run, aggregate."""

from __future__ import annotations

from benchflow_core.evaluation.config import EvaluationConfig, RetryConfig
from benchflow_core.evaluation.job import Evaluation
from benchflow_core.evaluation.summary import EvaluationResult

__all__ = ["Evaluation", "EvaluationConfig", "EvaluationResult", "RetryConfig"]
