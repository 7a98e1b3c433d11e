"""What a job is asked to do: the names under which `benchflow_core.settings.models` was found here."""

from __future__ import annotations

from benchflow_core.settings.models import JobSettings as EvaluationConfig
from benchflow_core.settings.models import RetryConfig

__all__ = ["EvaluationConfig", "RetryConfig"]
