"""What a job learned so far, in the box while agents work there, and what they made of it, brought out again."""

from __future__ import annotations

import shutil
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from benchflow_core.contracts.sandboxes import DownloadLimits
from benchflow_core.errors import InfrastructureError

if TYPE_CHECKING:
    from benchflow_core.rollout.rollout import Rollout

__all__ = ["LEARNED", "bring", "fetch", "note"]

LEARNED: Final = "learner"
"""The folder of a rollout that holds what it left."""
_PLACE: Final = "/learner"
_LIMITS: Final = DownloadLimits(max_bytes=32 * 1024 * 1024, max_entries=4096, max_depth=12)
_NOTE: Final = f"""

What earlier tasks taught is in {_PLACE}: notes in {_PLACE}/memory, skills in {_PLACE}/skills/<name>/SKILL.md. Read what
helps. Before you finish, write down there, in general terms, what will help with later tasks."""
_OPEN: Final = """
chmod -R a+rwX "$1" || exit 1
shift; skills="$1"; shift
for place in "$@"; do
  if [ -e "$place" ]; then
    for one in "$skills"/*; do [ -e "$one" ] && [ ! -e "$place/${one##*/}" ] && ln -s "$one" "$place/"; done
  else mkdir -p "${place%/*}" && ln -s "$skills" "$place"; fi
done
true
"""
_CLOSE: Final = """
shift; skills="$1"; shift
for place in "$@"; do
  if [ -L "$place" ]; then [ "$(readlink "$place")" = "$skills" ] && rm -f "$place"
  else for one in "$place"/*; do
    case "$(readlink "$one")" in "$skills"/*) rm -f "$one";; esac
  done; fi
done
rm -rf "${skills%/*}"
"""


def note(rollout: Rollout) -> str:
    """Where it is, behind the task's instruction; what it says is read there, not pasted."""
    return _NOTE if rollout.config.learner is not None else ""


async def bring(rollout: Rollout, places: list[str]) -> None:
    """Into the box, open to every user, and linked where agents look for skills.

    In a later step of a task that is what the step before left.
    """
    learned = rollout.config.learner
    if learned is None or rollout.learner_there:
        return
    left = rollout.record.dir.root / LEARNED
    await rollout.sandbox.upload(left if left.is_dir() else learned.folder, _PLACE)
    await _run(rollout, _OPEN, places, user=rollout.agent_user)
    rollout.learner_there = True
    if not left.is_dir():
        rollout.record.event("learner", {"generation": learned.generation, "digest": learned.digest})


async def fetch(rollout: Rollout, places: list[str]) -> None:
    """Out again, within limits and without secrets, and gone from the box before a verifier looks."""
    if not rollout.learner_there:
        return
    target = rollout.record.dir.root / LEARNED
    incoming = target.with_name(f".incoming-{LEARNED}")
    try:
        await rollout.sandbox.download(_PLACE, incoming, limits=_LIMITS)
        rollout.host.redactor.tree(incoming)
        shutil.rmtree(target, ignore_errors=True)  # of an earlier step
        incoming.rename(target)
    except (FileNotFoundError, InfrastructureError) as error:
        shutil.rmtree(incoming, ignore_errors=True)
        rollout.notice(f"what was learned could not be brought out: {error}")
    with suppress(InfrastructureError):
        await _run(rollout, _CLOSE, places, user="root")
    rollout.learner_there = False


async def _run(rollout: Rollout, script: str, places: list[str], *, user: str | None) -> None:
    argv = ("sh", "-c", script, "sh", _PLACE, f"{_PLACE}/skills", *places)
    done = await rollout.sandbox.exec(argv, user=user, cwd="/", timeout=60)
    if done.exit_code:
        tail = done.stderr.decode("utf-8", "replace")[-200:]
        raise InfrastructureError(f"{_PLACE} could not be made ready: {tail}")
