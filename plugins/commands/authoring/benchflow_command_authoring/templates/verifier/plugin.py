"""The plugin: which method it verifies, and by what."""

from __future__ import annotations

from benchflow_core.contracts import VerifierSpec, VerifyContext, VerifyResult
from benchflow_core.hookspecs import hookimpl


async def verify(context: VerifyContext) -> VerifyResult:
    from {{module}}.compare import compare

    return await compare(context)


@hookimpl
def benchflow_verifier() -> VerifierSpec:
    return VerifierSpec(
        summary="compares a file with what is expected",
        methods=frozenset({"{{name}}"}),
        verify=verify,
    )
