"""What a claw plugin tells BenchFlow: the kit's command line as one `ServiceSpec`."""

from __future__ import annotations

from pathlib import Path

from benchflow_core.contracts import ServiceContext, ServiceSpec

__all__ = ["claw_spec"]


def claw_spec(name: str, port: int, summary: str) -> ServiceSpec:
    """Return the spec of the service `name`, whose program is `claw-NAME` and whose scenario is `office` by default."""

    def command(context: ServiceContext) -> tuple[str, ...]:
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

    def seed(context: ServiceContext) -> tuple[str, ...]:
        scenario, number = context.options.get("scenario", "office"), context.options.get("seed", "0")
        return (context.program, "--db", context.db, "seed", "--scenario", scenario, "--seed", number)

    def diff(context: ServiceContext, base: str) -> tuple[str, ...]:
        return (context.program, "--db", context.db, "diff", "--base", base, "--json")

    def seeded_in(folder: Path) -> tuple[str, ...] | None:
        from benchflow_claw_kit.dockerfile import seeded_in

        return seeded_in(folder, name)

    return ServiceSpec(
        summary=summary,
        program=f"claw-{name}",
        seeded_in=seeded_in,
        port=port,
        distribution=f"benchflow-service-claw-{name}",
        command=command,
        seed=seed,
        diff=diff,
    )
