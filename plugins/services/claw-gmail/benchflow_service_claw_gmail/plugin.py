"""The hook: what the environment plane needs to run a mock Gmail."""

from __future__ import annotations

from pathlib import Path

from benchflow_core.contracts import ServiceContext, ServiceSpec
from benchflow_core.hookspecs import hookimpl


def _command(context: ServiceContext) -> tuple[str, ...]:
    return (
        context.program,
        "--db",
        context.db,
        "serve",
        "--host",
        "127.0.0.1",
        "--port",
        str(context.port),
        "--no-mcp",
    )


def _seed(context: ServiceContext) -> tuple[str, ...]:
    scenario, number = context.options["scenario"], context.options.get("seed", "0")
    return (context.program, "--db", context.db, "seed", "--scenario", scenario, "--seed", number)


def _diff(context: ServiceContext, base: str) -> tuple[str, ...]:
    return (context.program, "--db", context.db, "diff", "--base", base, "--json")


def _seeded_in(folder: Path) -> tuple[str, ...] | None:
    from benchflow_claw_kit.dockerfile import seeded_in

    return seeded_in(folder, "gmail")


@hookimpl
def benchflow_service() -> ServiceSpec:
    return ServiceSpec(
        summary="mock Gmail: the real API's routes over a SQLite file",
        program="claw-gmail",
        seeded_in=_seeded_in,
        port=9001,
        distribution="benchflow-service-claw-gmail",
        command=_command,
        seed=_seed,
        diff=_diff,
    )
