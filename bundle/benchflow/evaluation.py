"""Evaluations: many rollouts and one score."""

from __future__ import annotations

from benchflow_core.evaluation import Evaluation, EvaluationConfig, EvaluationResult, RetryConfig

__all__ = ["Evaluation", "EvaluationConfig", "EvaluationResult", "RetryConfig"]
