"""The entry point: light, and importing nothing of the work."""

from __future__ import annotations

from functools import cache

from benchflow_core.contracts import Capability, SandboxSpec
from benchflow_core.hookspecs import hookimpl


@cache
def _spec() -> SandboxSpec:
    from benchflow_boxkit.spec import CAPABILITIES, cloud_spec

    return cloud_spec(
        "benchflow_sandbox_daytona",
        "Daytona",
        capabilities=CAPABILITIES
        | {
            Capability.ACCESS_VIEW,
            Capability.LIMIT_CPU,
            Capability.LIMIT_MEMORY,
            Capability.LIMIT_STORAGE,
            Capability.GPU,
        },
        requires=("DAYTONA_API_KEY",),
        caveats={
            Capability.ACCESS_VIEW: "where root of a box may mount and its kernel (Linux 6.7 or newer) can keep a "
            "program from the ports of Daytona's own daemon in the box; tried when it is first asked for",
            Capability.IMAGE_BUILD: "by Daytona's own builder; what that does not know fails with its log; "
            "links and empty folders of the context do not arrive as such",
        },
    )


@hookimpl
def benchflow_sandbox() -> SandboxSpec:
    return _spec()
