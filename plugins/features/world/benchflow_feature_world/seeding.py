"""Filling a world: folders, the task's databases, scenarios."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from benchflow_core.contracts import ImageRef, Sandbox, ServiceContext
from benchflow_core.errors import InfrastructureError, TaskError
from benchflow_feature_world.plan import PlannedService, WorldPlan
from benchflow_feature_world.services import DATA

__all__ = ["context_of", "lay", "make_folders", "root_of", "seed"]

_SCENARIO = ".scenario.json"


def root_of(box: Sandbox) -> str | None:
    return "root" if "root" in box.info.users else None


def context_of(service: PlannedService, image: ImageRef | None = None) -> ServiceContext:
    known = service.service
    layers = known.spec.layers if known else ()
    return ServiceContext(
        port=service.port,
        data_dir=DATA,
        runtimes=image.runtimes if image else {},
        prefix=layers[0].prefix if layers else None,
        options=known.options if known else {},
        program=service.program,
        db=service.db or "",
    )


async def make_folders(box: Sandbox, plan: WorldPlan) -> None:
    """Where services keep their state: nobody else's to read."""
    folders = sorted({DATA, *(posixpath.dirname(service.db) for service in plan.services if service.db)} - {"/"})
    script = 'umask 077; mkdir -p -- "$@" && chmod 700 -- "$@"'
    done = await box.exec(("sh", "-c", script, "sh", *folders), cwd="/", user=root_of(box), timeout=60)
    if done.exit_code:
        said = done.stderr.decode("utf-8", "replace").strip()[-300:]
        raise InfrastructureError(f"the world's folders cannot be made: {said}")


async def lay(box: Sandbox, seeds: Mapping[str, Path]) -> None:
    for target, source in seeds.items():
        await box.upload(source, target, mode=None if source.is_dir() else 0o600)


async def seed(
    box: Sandbox, service: PlannedService, wrapped: Callable[[Sequence[str]], tuple[str, ...]], env: Mapping[str, str]
) -> None:
    """From the task's scenario file, else from the one that the options name; otherwise it keeps what it has."""
    known = service.service
    if known is None or known.spec.seed is None or not service.db:
        return
    context, file = context_of(service), f"{service.db}{_SCENARIO}"
    there = (await box.exec(("test", "-f", file), cwd="/", user=root_of(box), timeout=30)).exit_code == 0
    if there:
        context = replace(context, options={"seed": "0", **context.options, "scenario": file})
    elif "scenario" not in context.options:
        return
    argv = known.spec.seed(context)
    done = await box.exec(wrapped(argv), cwd="/", env=env, user=root_of(box), timeout=300)
    await box.exec(("rm", "-f", "--", file), cwd="/", user=root_of(box), timeout=30)
    if done.exit_code or done.timed_out:
        said = (done.stderr or done.stdout).decode("utf-8", "replace").strip()[-500:]
        raise TaskError(f"seeding '{service.name}' failed with exit code {done.exit_code}: {said}")
