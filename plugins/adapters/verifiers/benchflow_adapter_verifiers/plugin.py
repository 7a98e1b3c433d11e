"""The entry points: light, and importing nothing of the work."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from benchflow_core.contracts import (
    AdapterSpec,
    Check,
    DriverSpec,
    Episode,
    Fetched,
    SourceRequest,
    SourceSpec,
    Task,
    VerifierSpec,
    VerifyContext,
    VerifyResult,
)
from benchflow_core.hookspecs import hookimpl

FILE: Final = "verifiers.json"
_ADDRESSES: Final = ("env:primeintellect/", "primeintellect:")


def _fetch(request: SourceRequest) -> Fetched:
    from benchflow_adapter_verifiers.source import fetch_tasks

    address = request.uri
    for prefix in _ADDRESSES:
        address = address.removeprefix(prefix)
    return fetch_tasks(request, address)


def _load(path: Path) -> Task:
    from benchflow_adapter_verifiers.task import load_task

    return load_task(path)


async def _drive(episode: Episode, params: Mapping[str, Any]) -> None:
    from benchflow_adapter_verifiers.driver import drive

    await drive(episode)


async def _finish(episode: Episode, params: Mapping[str, Any]) -> None:
    from benchflow_adapter_verifiers.driver import finish

    await finish(episode)


async def _verify(context: VerifyContext) -> VerifyResult:
    from benchflow_adapter_verifiers.verdict import verify

    return await verify(context)


def _check() -> list[Check]:
    from benchflow_adapter_verifiers.environment import check

    return check()


@hookimpl
def benchflow_source() -> SourceSpec:
    return SourceSpec(
        summary="PrimeIntellect Verifiers environments, as env:primeintellect/NAME",
        matches=lambda uri: uri.startswith(_ADDRESSES),
        fetch=_fetch,
        check=_check,
        rank=40,
    )


@hookimpl
def benchflow_adapter() -> AdapterSpec:
    return AdapterSpec(
        summary="one task of a Verifiers environment",
        signature=FILE,
        detect=lambda path: (path / FILE).is_file(),
        load=_load,
        rank=80,
    )


@hookimpl
def benchflow_driver() -> DriverSpec:
    return DriverSpec(summary="the loop of a Verifiers environment", drive=_drive, finish=_finish)


@hookimpl
def benchflow_verifier() -> VerifierSpec:
    return VerifierSpec(
        summary="the reward that a Verifiers environment gave",
        methods=frozenset({"primeintellect"}),
        verify=_verify,
        needs_box=False,
    )
