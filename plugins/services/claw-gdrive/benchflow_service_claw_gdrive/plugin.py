"""The Google Drive service, as the environment plane starts it."""

from __future__ import annotations

from pathlib import Path

from benchflow_core.contracts import ServiceContext, ServiceSpec
from benchflow_core.hookspecs import hookimpl

__all__ = ["benchflow_service"]


def _seed(context: ServiceContext) -> tuple[str, ...]:
    options = context.options
    scenario, number = options.get("scenario", "office"), options.get("seed", "0")
    return (context.program, "--db", context.db, "seed", "--scenario", scenario, "--seed", number)


def _seeded_in(folder: Path) -> tuple[str, ...] | None:
    from benchflow_claw_kit.dockerfile import seeded_in

    return seeded_in(folder, "gdrive")


@hookimpl
def benchflow_service() -> ServiceSpec:
    return ServiceSpec(
        summary="mock Google Drive API",
        program="claw-gdrive",
        seeded_in=_seeded_in,
        port=9005,
        distribution="benchflow-service-claw-gdrive",
        command=lambda c: (c.program, "--db", c.db, "serve", "--host", "127.0.0.1", "--port", str(c.port), "--no-mcp"),
        seed=_seed,
        diff=lambda c, base: (c.program, "--db", c.db, "diff", "--base", base, "--json"),
    )
