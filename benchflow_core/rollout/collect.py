"""Bringing out what a box holds: the agent's logs and the declared artifacts, best effort, with a manifest."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from benchflow_core.contracts.sandboxes import Sandbox
from benchflow_core.contracts.tasks import Artifact, CollectHook
from benchflow_core.errors import BenchflowError, InfrastructureError
from benchflow_core.results.files import write_json
from benchflow_core.results.redact import Redactor

if TYPE_CHECKING:
    from benchflow_core.rollout.rollout import Rollout

__all__ = ["collect_artifacts", "collect_logs", "gather", "named_workdir", "run_collect_hooks"]

_ALWAYS = Artifact("/logs/artifacts")


async def gather(rollout: Rollout) -> None:
    """What a task's own hooks bring together, then logs and artifacts, to the host."""
    box, folder, redactor = rollout.sandbox, rollout.record.dir, rollout.host.redactor
    with suppress(BenchflowError):
        await run_collect_hooks(box, rollout.settings().collect)
    await collect_logs(box, folder.agent, redactor)
    await collect_artifacts(box, rollout.plan.task.artifacts, named_workdir(rollout), folder.artifacts, redactor)


def named_workdir(rollout: Rollout) -> str:
    """The working directory as the task knows it, which is where its artifacts are laid."""
    return rollout.sandbox.info.workdir_name or rollout.workdir


async def collect_logs(sandbox: Sandbox, target: Path, redactor: Redactor) -> None:
    """`/logs/agent` into the rollout's `agent/` folder."""
    try:
        await sandbox.download("/logs/agent", target)
    except (FileNotFoundError, InfrastructureError):
        return
    redactor.tree(target)


async def run_collect_hooks(sandbox: Sandbox, hooks: Sequence[CollectHook]) -> None:
    """The main service first, as Harbor does; a failing hook is no failure of the rollout."""
    for hook in sorted(hooks, key=lambda h: h.service != "main"):
        await sandbox.exec(
            ("sh", "-c", hook.command), user=hook.user, timeout=hook.timeout, service=hook.service, max_output=65536
        )


async def collect_artifacts(
    sandbox: Sandbox, artifacts: Sequence[Artifact], workdir: str, target: Path, redactor: Redactor
) -> None:
    """Each at its absolute path below `target`, or at its destination; the first claimant of a place wins."""
    manifest, taken = [], set()
    for artifact in (_ALWAYS, *artifacts):
        source = artifact.source if artifact.source.startswith("/") else f"{workdir}/{artifact.source}"
        place = target / (artifact.destination or source.lstrip("/"))
        entry: dict[str, Any] = {
            "source": artifact.source,
            "destination": str(place.relative_to(target)),
            "service": artifact.service,
            "exclude": list(artifact.exclude),
        }
        if place in taken:
            entry["status"] = "skipped"
        else:
            taken.add(place)
            entry |= await _fetch(sandbox, source, place, artifact, target)
        manifest.append(entry)
    if any(e["status"] == "ok" for e in manifest) or artifacts:
        redactor.tree(target)
        write_json(target / "manifest.json", manifest)


async def _fetch(sandbox: Sandbox, source: str, place: Path, artifact: Artifact, target: Path) -> dict[str, Any]:
    # Folders down to its place are made when there is something to lay there, which is rare.
    landed = place if place.parent.exists() else target.with_name(f".incoming-{secrets.token_hex(4)}")
    try:
        await sandbox.download(source, landed, service=artifact.service)
    except FileNotFoundError:
        return {"status": "failed", "reason": "not there"}
    except InfrastructureError as error:
        _lay(landed, place)
        return {"status": "failed", "reason": error.message}
    except BaseException:  # cut off: half of it, unredacted, must not stay under a name that nobody looks for
        if landed != place:
            shutil.rmtree(landed, ignore_errors=True)
            landed.unlink(missing_ok=True)
        raise
    kind = "directory" if landed.is_dir() else "file"
    if kind == "directory":
        _drop_excluded(landed, artifact.exclude)
        if not any(landed.iterdir()):
            landed.rmdir()
            return {"type": kind, "status": "empty"}
    _lay(landed, place)
    return {"type": kind, "status": "ok"}


def _lay(landed: Path, place: Path) -> None:
    """At its place, with as much as came."""
    if landed != place and landed.exists():
        place.parent.mkdir(parents=True)
        landed.rename(place)


def _drop_excluded(root: Path, patterns: Sequence[str]) -> None:
    for path in sorted(root.rglob("*"), reverse=True) if patterns else ():
        relative = PurePosixPath(path.relative_to(root).as_posix())
        if any(relative.match(p) or relative.match(f"{p}/**") for p in patterns):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
