"""`bench environment`: the worlds that agents can act in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from benchflow_core.contracts import CommandContext
from benchflow_core.errors import BenchflowError

if TYPE_CHECKING:
    from benchflow_core.contracts.core import Core
    from benchflow_feature_world.manifest import Manifest

__all__ = ["environment"]


@click.group("environment")
def environment() -> None:
    """List, show and check environment manifests and services."""


@environment.command("list")
@click.pass_obj
def list_environments(ui: CommandContext) -> None:
    """Manifests of the registry folders, and the services that are installed."""
    from benchflow_feature_world.find import registered
    from benchflow_feature_world.services import known_services

    core, seen, manifests = ui.core(), set(), []
    for owner, path in registered(core, core.env()):
        entry = {"name": path.stem, "from": owner, "path": str(path), "shadowed": path.stem in seen}
        seen.add(path.stem)
        manifests.append({**entry, **_summary(core, str(path))})
    services = list({s.name: s for s in known_services(core).values()}.values())
    rows = [[e["name"], e["from"], e["summary"]] for e in manifests]
    shown = [[s.name, str(s.port), s.spec.program or "on the host", s.spec.summary] for s in services]
    data = {
        "environments": manifests,
        "services": [
            {"name": s.name, "port": s.port, "program": s.spec.program, "summary": s.spec.summary} for s in services
        ],
    }

    def text() -> None:
        if rows:
            ui.table(["ENVIRONMENT", "FROM", "WHAT"], rows)
            ui.out("")
        ui.table(["SERVICE", "PORT", "PROGRAM", "WHAT"], shown)

    ui.emit(data, text)


@environment.command("show")
@click.argument("reference", metavar="PATH|NAME[@VERSION]")
@click.pass_obj
def show(ui: CommandContext, reference: str) -> None:
    """One manifest, as it is understood, with its hash."""
    manifest = _find(ui.core(), reference)
    data = _describe(manifest)

    def text() -> None:
        import json

        ui.out(f"{data['name']}  {data['env_hash']}")
        ui.out(f"{data['path']}")
        for line in json.dumps(data["environment"], indent=2, ensure_ascii=False).splitlines():
            ui.out(line)

    ui.emit(data, text)


@environment.command("check")
@click.argument("references", metavar="PATH|NAME[@VERSION]", nargs=-1, required=True)
@click.pass_obj
@click.pass_context
def check(ctx: click.Context, ui: CommandContext, references: tuple[str, ...]) -> None:
    """Read manifests and say what would happen. Nothing is started. Exit code 1: one of them is wrong."""
    rows: list[dict[str, Any]] = []
    for reference in references:
        try:
            manifest = _find(ui.core(), reference)
            rows.append(
                {"reference": reference, "ok": True, "notes": _notes(ui.core(), manifest), **_describe(manifest)}
            )
        except BenchflowError as error:
            rows.append({"reference": reference, "ok": False, "error": str(error)})

    def text() -> None:
        for row in rows:
            mark = ui.style("✓", "green") if row["ok"] else ui.style("✗", "red")
            said = f"{row['name']}  {row['env_hash'][:19]}…" if row["ok"] else row["error"]
            ui.out(f"{mark} {row['reference']}: {said}")
            for note in row.get("notes", ()):
                ui.out(f"  {note}")

    ui.emit({"environments": rows}, text)
    if not all(row["ok"] for row in rows):
        ctx.exit(1)


def _find(core: Core, reference: str) -> Manifest:
    from benchflow_feature_world.find import find_manifest

    return find_manifest(reference, core, core.env())


def _describe(manifest: Manifest) -> dict[str, Any]:
    return {
        "name": manifest.name,
        "version": manifest.version,
        "env_hash": manifest.env_hash,
        "path": str(manifest.path),
        "environment": manifest.environment.model_dump(mode="json"),
    }


def _summary(core: Core, reference: str) -> dict[str, Any]:
    try:
        manifest = _find(core, reference)
    except BenchflowError as error:
        return {"summary": f"broken: {error.message}", "env_hash": None}
    env = manifest.environment
    what = "starts its own services" if env.owns_lifecycle else ", ".join(s.name for s in env.services)
    return {"summary": f"{env.image or env.base_image}: {what}", "env_hash": manifest.env_hash}


def _notes(core: Core, manifest: Manifest) -> list[str]:
    """What a reader of the manifest would want to know before running it."""
    import shlex

    from benchflow_feature_world.services import known_services
    from benchflow_feature_world.state import state_backend

    env = manifest.environment
    brought = {s.spec.program for s in known_services(core).values() if s.spec.program}
    state_backend(env.state.kind, core)
    notes = []
    for service in env.services:
        program = shlex.split(service.command)[0]
        where = "brought by an installed plugin" if program in brought else "has to be installed in the image"
        notes.append(f"{service.name}: port {service.port}, {program} {where}")
    if env.owns_lifecycle:
        notes.append(f"{env.image or env.base_image} starts its services itself")
    if env.forward_env.keys:
        notes.append(f"asks for {', '.join(env.forward_env.keys)}: given only with --allow-env")
    if env.isolation == "persistent":
        notes.append("one world for all rollouts of a job")
    ready = env.readiness
    if env.owns_lifecycle and not (ready.http or ready.tcp or ready.command):
        notes.append("declares no readiness: the agent starts as soon as the image's process does")
    return notes
