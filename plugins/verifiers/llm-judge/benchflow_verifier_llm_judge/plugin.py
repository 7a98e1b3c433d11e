"""The entry point: light, and importing nothing of the work."""

from __future__ import annotations

from benchflow_core.contracts import VerifierSpec, VerifyContext, VerifyResult
from benchflow_core.hookspecs import hookimpl


async def _verify(context: VerifyContext) -> VerifyResult:
    from benchflow_verifier_llm_judge.judge import judge

    return await judge(context)


@hookimpl
def benchflow_verifier() -> VerifierSpec:
    return VerifierSpec(
        summary="asks a model about each criterion of the task's rubric",
        methods=frozenset({"llm-judge"}),
        verify=_verify,
        needs_model=True,
    )
