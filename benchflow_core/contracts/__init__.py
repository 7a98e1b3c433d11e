"""Typed payloads and protocols that cross the plugin boundary, one short file per kind.

Names are resolved on first use, so a plugin pays only for the kinds it serves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from benchflow_core.lazy import moved, names_of

if TYPE_CHECKING:
    from benchflow_core.contracts.adapters import *
    from benchflow_core.contracts.agents import *
    from benchflow_core.contracts.commands import *
    from benchflow_core.contracts.common import *
    from benchflow_core.contracts.drivers import *
    from benchflow_core.contracts.environments import *
    from benchflow_core.contracts.events import *
    from benchflow_core.contracts.executors import *
    from benchflow_core.contracts.exporters import *
    from benchflow_core.contracts.features import *
    from benchflow_core.contracts.gateways import *
    from benchflow_core.contracts.isolation import *
    from benchflow_core.contracts.logs import *
    from benchflow_core.contracts.panels import *
    from benchflow_core.contracts.results import *
    from benchflow_core.contracts.sandboxes import *
    from benchflow_core.contracts.scenes import *
    from benchflow_core.contracts.sessions import *
    from benchflow_core.contracts.settings import *
    from benchflow_core.contracts.settings_model import *
    from benchflow_core.contracts.sources import *
    from benchflow_core.contracts.tasks import *
    from benchflow_core.contracts.verifiers import *

_HOME = {
    "adapters": "AdapterSpec Finding JobFile Migration Scaffold ScaffoldRequest",
    "agents": "AgentContext AgentOption AgentSpec AuthOption Companion Launch PermissionPolicy PromptOutcome Session SessionContext SessionEvent read_skill",
    "commands": "CommandContext CommandSpec",
    "common": "Capability Availability Check Runtime Layer LoadedPlugin McpServer Usage private_folder upload_secret",
    "drivers": "BaseUser DriverSpec Episode RoundResult SoftVerdict TurnRecord",
    "environments": "EnvironmentSpec HostServiceContext ServiceContext ServiceSpec StateBackend",
    "events": "Event JobFinished JobStarted LiveRollout ObserverSpec PhaseFinished PhaseStarted RolloutFinished RolloutStarted TurnFinished TurnStarted",
    "executors": "Capacity Executor ExecutorContext ExecutorSpec Hear ItemResult JobGateways JobWorker OpenWorker PlanItem",
    "exporters": "ExporterSpec JobResults RolloutRecord",
    "features": "FeatureBox FeatureJob FeaturePlan FeatureRun FeatureSpec FinishedRollout PlanView RunView",
    "gateways": "Exchange Gateway GatewayContext GatewaySpec KeyRequest ModelEndpoint ModelTarget Provider ProviderCredential ProviderParameter RolloutKey Wire",
    "isolation": "IsolationPolicy IsolationRequest ReferenceRun RunVerifier Verdict VerifyBox noted",
    "logs": "CappedLog",
    "panels": "Panel PanelBars PanelBlock PanelFacts PanelTable PanelText",
    "results": "EvaluationResult OwnedPanel ResultsReader TaskScores",
    "sandboxes": "AccessView BoxInfo ByteStream Change DownloadLimits ExecResult HostEndpoint ImageRef ImageRequest Lease NetworkPolicy Process Resources Sandbox SandboxContext SandboxProvider SandboxSpec Snapshot StartRequest",
    "sessions": "ClientFiles ElicitCallback PermissionCallback SessionOptions",
    "settings": "Alias Also Axis Blocks Internal OfOneRollout Option Recorded Secret Table Texts Treatment",
    "settings_model": "Settings",
    "sources": "Fetched SourceRequest SourceSpec",
    "scenes": "DriveStep Role Scene Turn",
    "tasks": "Artifact CollectHook Healthcheck RewardDialect RewardFiles Rewards SetupCommand Solution Step Task TaskEnvironment VerifierSettings",
    "verifiers": "TestOutcome VerifierSpec VerifyContext VerifyResult",
}

__all__ = sorted(" ".join(_HOME.values()).split())  # pyright: ignore

_MOVED = dict.fromkeys(
    ["NODE", "NODE_LAYER", "NODE_VERSION", "npm_layers", "PYTHON", "PYTHON_LAYER", "PYTHON_VERSION", "pip_layers"],
    "benchflow_layers",
) | dict.fromkeys(["WORKER", "WorkerProcess"], "benchflow_executor_processes.worker_process")
"""Names that have left, and their package. They are found here until the next minor release."""

_look_up = names_of(__name__, _HOME)


def __getattr__(name: str) -> Any:
    return moved(__name__, name, _MOVED[name]) if name in _MOVED else _look_up(name)


def __dir__() -> list[str]:
    return __all__
