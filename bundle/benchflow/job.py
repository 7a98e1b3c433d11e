"""Job is the older word for evaluation."""

from __future__ import annotations

from benchflow_core.evaluation import Evaluation, EvaluationConfig, EvaluationResult, RetryConfig

__all__ = ["Job", "JobConfig", "JobResult", "RetryConfig"]

Job = Evaluation
JobConfig = EvaluationConfig
JobResult = EvaluationResult
