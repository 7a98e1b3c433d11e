"""The entry point: light, and importing nothing of the work."""

from __future__ import annotations

from functools import cache

from benchflow_core.contracts import Capability, ImageRequest, SandboxSpec
from benchflow_core.hookspecs import hookimpl


def _refuse_image(request: ImageRequest) -> None:
    from benchflow_sandbox_e2b.dockerfiles import refuse

    refuse(request)


@cache
def _spec() -> SandboxSpec:
    from benchflow_boxkit.spec import CAPABILITIES, VIEWS, cloud_spec

    return cloud_spec(
        "benchflow_sandbox_e2b",
        "E2B",
        capabilities=CAPABILITIES | {Capability.ACCESS_VIEW, Capability.LIMIT_CPU, Capability.LIMIT_MEMORY},
        requires=("E2B_API_KEY",),
        caveats={
            **VIEWS,
            Capability.IMAGE_BUILD: "as a template's steps, each stage that files are copied from as a template of its "
            "own; mounts other than caches, `SHELL` and a few flags are refused by line before anything starts",
            Capability.IMAGE_PREBUILT: "without their own `WORKDIR` and `USER`, which E2B does not tell",
        },
        refuse_image=_refuse_image,
    )


@hookimpl
def benchflow_sandbox() -> SandboxSpec:
    return _spec()
