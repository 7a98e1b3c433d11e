"""The hooks of the package."""

from __future__ import annotations

from benchflow_core.contracts import CommandSpec, FeatureSpec, Task
from benchflow_core.hookspecs import hookimpl


def _asks_for_a_world(task: Task) -> bool:
    """Whether a task pins an environment, or has a Dockerfile, which may name services."""
    environment = task.environment
    return "environment_manifest" in task.metadata or environment.dockerfile is not None or _has_manifest(task)


def _has_manifest(task: Task) -> bool:
    return any((task.path / "environment" / f"environment{suffix}").is_file() for suffix in (".toml", ".yaml", ".yml"))


@hookimpl
def benchflow_feature() -> FeatureSpec:
    return FeatureSpec(
        summary="environments with services that agents act in (environment.toml, --service)",
        settings="benchflow_feature_world.settings:WorldSettings",
        plan="benchflow_feature_world.feature:plan",
        applies=_asks_for_a_world,
        keys={"result": ("world", "env_hash"), "config": ("world", "env_hash"), "lock": ("world",)},
        folder="world",
        drift="benchflow_feature_world.find:drift",
    )


@hookimpl
def benchflow_command() -> CommandSpec:
    return CommandSpec(
        summary="list, show and check environments and services",
        commands={"environment": "benchflow_feature_world.environment:environment"},
    )
