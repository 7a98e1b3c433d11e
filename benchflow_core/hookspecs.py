"""The whole plugin contract. One hook per kind; a plugin implements those of the kinds it serves.

A plugin package declares an entry point in the group of its kind. The name of the entry point is what users type::

    [project.entry-points."benchflow.sandboxes"]
    e2b = "benchflow_sandbox_e2b.plugin"

and the module it names implements the kind's hook, without importing anything heavy at the top::

    from benchflow_core.hookspecs import hookimpl
    from benchflow_core.contracts import SandboxSpec

    @hookimpl
    def benchflow_sandbox() -> SandboxSpec:
        ...

Rules. A hook takes no argument and returns one spec, the same on every call. Another entry point with the same value is
an alias. One module may serve several kinds; several plugins of one kind are several modules. Plugins import only
`benchflow_core.hookspecs`, `.contracts` and `.errors`; their tests, `benchflow_testing_kit`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pluggy

if TYPE_CHECKING:
    from benchflow_core.contracts.adapters import AdapterSpec
    from benchflow_core.contracts.agents import AgentSpec
    from benchflow_core.contracts.commands import CommandSpec
    from benchflow_core.contracts.drivers import DriverSpec
    from benchflow_core.contracts.environments import EnvironmentSpec, ServiceSpec
    from benchflow_core.contracts.events import ObserverSpec
    from benchflow_core.contracts.executors import ExecutorSpec
    from benchflow_core.contracts.exporters import ExporterSpec
    from benchflow_core.contracts.features import FeatureSpec
    from benchflow_core.contracts.gateways import GatewaySpec
    from benchflow_core.contracts.sandboxes import SandboxSpec
    from benchflow_core.contracts.sources import SourceSpec
    from benchflow_core.contracts.verifiers import VerifierSpec

__all__ = ["GROUPS", "PROJECT", "hookimpl", "hookspec"]

PROJECT: Final = "benchflow"

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)

GROUPS: Final = {
    "agent": "benchflow.agents",
    "sandbox": "benchflow.sandboxes",
    "adapter": "benchflow.adapters",
    "environment": "benchflow.environments",
    "service": "benchflow.services",
    "verifier": "benchflow.verifiers",
    "gateway": "benchflow.gateways",
    "driver": "benchflow.drivers",
    "source": "benchflow.sources",
    "executor": "benchflow.executors",
    "exporter": "benchflow.exporters",
    "command": "benchflow.commands",
    "feature": "benchflow.features",
    "observer": "benchflow.observers",
}
"""Kind to entry-point group. The hook of a kind is `benchflow_<kind>`, its spec `<Kind>Spec`."""


@hookspec
def benchflow_agent() -> AgentSpec:
    """An agent. Asked when `-a NAME` names it, by `bench agent show` and by `bench plugins list`."""


@hookspec
def benchflow_sandbox() -> SandboxSpec:
    """A sandbox. Asked when `--sandbox NAME` names it, and when a default is chosen by rank."""


@hookspec
def benchflow_adapter() -> AdapterSpec:
    """A task format. Every adapter is asked, in order of rank, whether a folder is of its format."""


@hookspec
def benchflow_environment() -> EnvironmentSpec:
    """Environment manifests and state backends. Asked when a manifest is named or looked up."""


@hookspec
def benchflow_service() -> ServiceSpec:
    """A service of the environment plane. Asked when a config or a manifest names it, or a Dockerfile installs it."""


@hookspec
def benchflow_verifier() -> VerifierSpec:
    """A verifier. Chosen by the method a task asks for."""


@hookspec
def benchflow_gateway() -> GatewaySpec:
    """A model gateway. Chosen by the wires it carries, or by `--gateway NAME`."""


@hookspec
def benchflow_driver() -> DriverSpec:
    """A driver. Asked when a config or `--loop-strategy` names it."""


@hookspec
def benchflow_source() -> SourceSpec:
    """A task source. Every source is asked, in order of rank, whether it serves a URI."""


@hookspec
def benchflow_executor() -> ExecutorSpec:
    """An executor. Asked when `--executor NAME` names it; without one a job runs in its own process."""


@hookspec
def benchflow_exporter() -> ExporterSpec:
    """An export format. Asked when `--format NAME` names it; automatic ones for every job."""


@hookspec
def benchflow_command() -> CommandSpec:
    """A command of `bench`. Asked when it is run, never for `bench --help`."""


@hookspec
def benchflow_feature() -> FeatureSpec:
    """A feature. Asked while a rollout is planned, and for the settings that it brings."""


@hookspec
def benchflow_observer() -> ObserverSpec:
    """An observer. Loaded for every job, never for help or lists."""
