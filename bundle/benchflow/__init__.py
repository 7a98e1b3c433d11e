"""The public face of BenchFlow: `import benchflow as bf`. Names are imported on first use."""

from __future__ import annotations

import importlib
import sys
from typing import Any

from benchflow_core import __version__

_HOME = {
    "benchflow.agents": "get_agent list_agents",
    "benchflow.runtime": "Agent Environment Runtime RuntimeConfig RuntimeResult run",
    "benchflow.sdk": "SDK",
    "benchflow.task_runtime": "BashToolResult TaskRuntime TaskRuntimeConfig TaskRuntimeResult",
    "benchflow_core.contracts.scenes": "Role Scene Turn compile_scenes_to_steps",
    "benchflow_core.contracts.drivers": "BaseUser RoundResult",
    "benchflow_driver_scenes.model_user": "ModelUser",
    "benchflow_driver_scenes.users": "FunctionUser PassthroughUser",
    "benchflow_core.rollout": "Host Rollout RolloutConfig RolloutResult",
    "benchflow_core.evaluation": "Evaluation EvaluationConfig EvaluationResult RetryConfig",
    "benchflow_core.settings.matrix": "Choice Matrix",
    "benchflow.stored": "BenchmarkMetrics Comparisons Results collect_metrics compare results",
    "benchflow.trial_yaml": "rollout_config_from_yaml trial_config_from_yaml",
    "benchflow.trial": "ACPError Trial TrialConfig RunResult",
    "benchflow.job": "Job JobConfig JobResult",
    "benchflow_core.errors": "AgentTimeout BenchflowError",
    "benchflow_core.contracts.sandboxes": "ExecResult ImageRef Sandbox",
    "benchflow_core.contracts.tasks": "Task",
    "benchflow_core.contracts.verifiers": "VerifyResult",
    "benchflow_feature_standard.learning.store": "LearnerStore",
    "benchflow.skills": "SkillInfo discover_skills install_skill parse_skill",
    "benchflow_core.task": "load_task task_digest",
    "benchflow.services": "SERVICES build_service_hooks detect_services_from_dockerfile register_service",
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names.split()}

__all__ = ["__version__", *sorted(_MODULE_OF)]


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'benchflow' has no attribute {name!r}")
    value = getattr(importlib.import_module(_MODULE_OF[name]), name)
    if "benchflow_core.rollout.result" in sys.modules:  # what gives results is imported: they show themselves
        importlib.import_module("benchflow.notebook")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
