"""The entry points: light, and importing nothing of the work."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from benchflow_core.contracts import (
    AdapterSpec,
    Fetched,
    SourceRequest,
    SourceSpec,
    Task,
    VerifierSpec,
    VerifyContext,
    VerifyResult,
)
from benchflow_core.hookspecs import hookimpl

SCHEME: Final = "skill-evals:"


def _fetch(request: SourceRequest) -> Fetched:
    from benchflow_feature_standard.cases.fetch import fetch_cases

    return fetch_cases(request, request.uri.removeprefix(SCHEME))


def _load(path: Path) -> Task:
    from benchflow_feature_standard.cases.case import load_case

    return load_case(path)


async def _verify(context: VerifyContext) -> VerifyResult:
    from benchflow_feature_standard.cases.grade import grade

    return await grade(context)


@hookimpl
def benchflow_source() -> SourceSpec:
    return SourceSpec(
        summary="the cases of a skill's evals/evals.json",
        matches=lambda uri: uri.startswith(SCHEME),
        fetch=_fetch,
        rank=40,
    )


@hookimpl
def benchflow_adapter() -> AdapterSpec:
    return AdapterSpec(
        summary="one case of a skill's evaluation",
        signature="case.json",
        detect=lambda path: (path / "case.json").is_file() and not (path / "task.toml").exists(),
        load=_load,
        rank=90,
    )


@hookimpl
def benchflow_verifier() -> VerifierSpec:
    return VerifierSpec(
        summary="judges what an agent said and did by the case's list of expected behaviour",
        methods=frozenset({"skill-case"}),
        verify=_verify,
        needs_box=False,
        needs_model=True,
    )
