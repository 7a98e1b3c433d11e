"""The plugin author's kit: one conformance class per kind, used by subclassing with one fixture.

::

    from benchflow_testing_kit import SandboxConformance, xfail

    class TestMySandbox(SandboxConformance):
        @pytest.fixture
        def plugin(self) -> str:
            return "mine"  # the entry-point name

        test_two_boxes_cannot_reach_each_other = xfail(reason="the vendor puts all boxes on one network")

`-m quick` runs what belongs into every CI run, `-m soak` the load tests.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from benchflow_testing_kit.adapter import AdapterConformance
    from benchflow_testing_kit.agent import AgentConformance
    from benchflow_testing_kit.episode import RecordedEpisode
    from benchflow_testing_kit.executor import ExecutorConformance
    from benchflow_testing_kit.feature import FeatureConformance, RecordedRun
    from benchflow_testing_kit.gateway import GatewayConformance
    from benchflow_testing_kit.kinds import (
        CommandConformance,
        DriverConformance,
        EnvironmentConformance,
        ExporterConformance,
        ObserverConformance,
        ServiceConformance,
        SourceConformance,
    )
    from benchflow_testing_kit.plugin import PluginConformance
    from benchflow_testing_kit.sandbox import SandboxConformance
    from benchflow_testing_kit.suite import xfail
    from benchflow_testing_kit.verifier import VerifierCase, VerifierConformance

_HOME = {
    "adapter": "AdapterConformance",
    "agent": "AgentConformance",
    "episode": "RecordedEpisode",
    "executor": "ExecutorConformance",
    "feature": "FeatureConformance RecordedRun",
    "gateway": "GatewayConformance",
    "kinds": "CommandConformance DriverConformance EnvironmentConformance ExporterConformance "
    "ObserverConformance ServiceConformance SourceConformance",
    "plugin": "PluginConformance",
    "sandbox": "SandboxConformance",
    "suite": "xfail",
    "verifier": "VerifierCase VerifierConformance",
}
# Assertions of the inherited tests explain themselves only if they are rewritten before they are first imported.
pytest.register_assert_rewrite(*(f"{__name__}.{module}" for module in _HOME))

_MODULE_OF = {name: module for module, names in _HOME.items() for name in names.split()}

__all__ = [
    "AdapterConformance",
    "AgentConformance",
    "CommandConformance",
    "DriverConformance",
    "EnvironmentConformance",
    "ExecutorConformance",
    "ExporterConformance",
    "FeatureConformance",
    "GatewayConformance",
    "ObserverConformance",
    "PluginConformance",
    "RecordedEpisode",
    "RecordedRun",
    "SandboxConformance",
    "ServiceConformance",
    "SourceConformance",
    "VerifierCase",
    "VerifierConformance",
    "xfail",
]


def __getattr__(name: str) -> Any:
    module = _MODULE_OF.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{module}"), name)
