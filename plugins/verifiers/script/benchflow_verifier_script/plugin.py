"""The entry point: light, and importing nothing of the work."""

from __future__ import annotations

from benchflow_core.contracts import VerifierSpec, VerifyContext, VerifyResult
from benchflow_core.hookspecs import hookimpl


async def _verify(context: VerifyContext) -> VerifyResult:
    from benchflow_verifier_script.script import run_script

    return await run_script(context)


@hookimpl
def benchflow_verifier() -> VerifierSpec:
    return VerifierSpec(
        summary="runs the task's test script and reads the reward it wrote",
        methods=frozenset({"test-script"}),
        verify=_verify,
    )
