"""The entry points: light, and importing nothing of the work."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchflow_core.contracts import (
    AdapterSpec,
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


def _matches(uri: str) -> bool:
    from benchflow_adapter_ors.address import matches

    return matches(uri)


def _fetch(request: SourceRequest) -> Fetched:
    from benchflow_adapter_ors.tasks import fetch_tasks

    return fetch_tasks(request)


def _load(path: Path) -> Task:
    from benchflow_adapter_ors.tasks import load_task

    return load_task(path)


async def _drive(episode: Episode, params: Mapping[str, Any]) -> None:
    import asyncio
    from importlib import import_module

    # The MCP library takes seconds to import: the loop, which other rollouts share, goes on meanwhile.
    module = await asyncio.to_thread(import_module, "benchflow_adapter_ors.play")
    await module.play(episode, params)


def _refuse(params: Mapping[str, Any]) -> None:
    steps = params.get("steps") or ()
    if len(steps) > 1 or any(step.prompt for step in steps):
        from benchflow_core.errors import ConfigurationError

        raise ConfigurationError(
            "an ORS environment gives its one prompt itself.", remedy="Leave out prompts, scenes and further roles."
        )


async def _verify(context: VerifyContext) -> VerifyResult:
    from benchflow_adapter_ors.rewards import score

    return await score(context)


@hookimpl
def benchflow_source() -> SourceSpec:
    return SourceSpec(
        summary="environments of OpenReward, and servers that speak ORS", matches=_matches, fetch=_fetch, rank=40
    )


@hookimpl
def benchflow_adapter() -> AdapterSpec:
    return AdapterSpec(
        summary="one task of an ORS environment",
        signature="ors.json",
        detect=lambda path: (path / "ors.json").is_file() and not (path / "task.toml").exists(),
        load=_load,
        rank=90,
    )


@hookimpl
def benchflow_driver() -> DriverSpec:
    return DriverSpec(summary="play one episode of an ORS environment", drive=_drive, refuse=_refuse)


@hookimpl
def benchflow_verifier() -> VerifierSpec:
    return VerifierSpec(
        summary="what an ORS environment paid during the episode, by the policy of the task",
        methods=frozenset({"ors"}),
        verify=_verify,
        needs_box=False,
    )
