"""The entry point: light, and importing nothing of the work."""

from __future__ import annotations

from functools import cache

from benchflow_core.contracts import Capability, ImageRequest, SandboxSpec
from benchflow_core.hookspecs import hookimpl


def _refuse_image(request: ImageRequest) -> None:
    from benchflow_sandbox_modal.dockerfiles import refuse

    refuse(request)


@cache
def _spec() -> SandboxSpec:
    from benchflow_boxkit.spec import CAPABILITIES, VIEWS, cloud_spec

    return cloud_spec(
        "benchflow_sandbox_modal",
        "Modal",
        capabilities=CAPABILITIES
        | {Capability.ACCESS_VIEW, Capability.LIMIT_CPU, Capability.LIMIT_MEMORY, Capability.GPU},
        requires=("MODAL_TOKEN_ID", "MODAL_TOKEN_SECRET"),
        caveats={
            **VIEWS,
            Capability.IMAGE_BUILD: "by Modal's own builder, not Docker's; what that does not know fails with its log; "
            "links and empty folders of the context do not arrive as such",
        },
        refuse_image=_refuse_image,
    )


@hookimpl
def benchflow_sandbox() -> SandboxSpec:
    return _spec()
