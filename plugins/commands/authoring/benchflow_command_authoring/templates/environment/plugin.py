"""The plugin: where the manifests are, and how the state of a world is captured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchflow_core.contracts import EnvironmentSpec, StateBackend
from benchflow_core.hookspecs import hookimpl

if TYPE_CHECKING:
    from benchflow_core.contracts import Sandbox


async def snapshot(box: Sandbox, paths: Sequence[str], name: str) -> Mapping[str, Any]:
    from {{module}}.state import capture

    return await capture(box, paths, name)


async def restore(box: Sandbox, paths: Sequence[str], captured: Mapping[str, Any]) -> None:
    from {{module}}.state import put_back

    await put_back(box, paths, captured)


@hookimpl
def benchflow_environment() -> EnvironmentSpec:
    return EnvironmentSpec(
        summary="a world of plain files",
        manifests=Path(__file__).parent / "manifests",
        state_backends=(StateBackend(kind="{{name}}-files", snapshot=snapshot, restore=restore),),
    )
