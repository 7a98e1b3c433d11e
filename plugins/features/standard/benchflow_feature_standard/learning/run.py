"""What a job learned so far, in the box while agents work there, and what they made of it, brought out again."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from benchflow_core.contracts import (
    DownloadLimits,
    FeatureBox,
    FeaturePlan,
    FeatureRun,
    LoadedPlugin,
    PlanView,
    RunView,
)
from benchflow_core.errors import ConfigurationError, InfrastructureError
from benchflow_feature_standard.skills.folders import required_skills
from benchflow_feature_standard.skills.places import places

if TYPE_CHECKING:
    from benchflow_feature_standard.learning.settings import LearningSettings

__all__ = ["LEARNED", "LearningPlan", "LearningRun", "plan"]

LEARNED: Final = "learner"
"""The folder of a rollout that holds what it left, and the setting that says what it is given."""
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


@dataclass(frozen=True, kw_only=True)
class LearningPlan(FeaturePlan):
    """A rollout that learns."""

    agents: Mapping[str, LoadedPlugin]
    """Role to its agent."""

    def open(self, run: RunView) -> LearningRun:
        return LearningRun(self, run)


def plan(settings: LearningSettings, view: PlanView) -> LearningPlan | None:
    """Refuse what cannot be meant by rollouts that learn from each other."""
    if settings.job_mode != "sequential-shared":
        return None
    if view.settings["arm"] is not None:
        raise ConfigurationError(
            "job_mode: sequential-shared and a matrix: arms that learn from each other cannot be compared.",
            remedy="Run one job per arm.",
        )
    if (mode := view.settings.get("skill_mode")) in ("with-skill", "self-gen"):
        raise ConfigurationError(
            f"job_mode: sequential-shared brings skills of its own; skill_mode {mode} is in its way.",
            remedy="Leave it out; skills_dir names what the store begins with.",
        )
    if start := view.settings.get("skills_dir"):
        required_skills(Path(start).expanduser())
    # What it says is read in the box, not pasted into prompts.
    return LearningPlan(note=_NOTE, agents={name: view.agents[role.agent] for name, role in view.roles.items()})


class LearningRun(FeatureRun):
    """What one rollout is given to learn from, and what it leaves."""

    def __init__(self, planned: LearningPlan, run: RunView) -> None:
        self._plan, self._run = planned, run
        self._given: Mapping[str, Any] | None = run.settings.get(LEARNED)

    @asynccontextmanager
    async def agent(self, box: FeatureBox) -> AsyncIterator[None]:
        """Bring it into the box, open to every user, linked where agents look for skills; take it out at the end.

        In a later step of a task that is what the step before left.
        """
        if self._given is None:
            yield
            return
        found, left = places(box, self._plan.agents), self._run.dir / LEARNED
        first = not left.is_dir()
        await box.sandbox.upload(Path(self._given["folder"]) if first else left, _PLACE)
        await _call(box, _OPEN, found, user=box.user)
        if first:
            self._run.event("learner", _stamp(self._given))
        yield
        await self._fetch(box)
        with suppress(InfrastructureError):
            await _call(box, _CLOSE, found, user="root")

    async def _fetch(self, box: FeatureBox) -> None:
        """Keep what was learned, within limits and without secrets, in the place of what an earlier step left."""
        target = self._run.dir / LEARNED
        incoming = target.with_name(f".incoming-{LEARNED}")
        try:
            await box.sandbox.download(_PLACE, incoming, limits=_LIMITS)
            self._run.redact(incoming)
            shutil.rmtree(target, ignore_errors=True)
            incoming.rename(target)
        except (FileNotFoundError, InfrastructureError) as error:
            shutil.rmtree(incoming, ignore_errors=True)
            self._run.notice(f"what was learned could not be brought out: {error}")

    def lock(self) -> Mapping[str, Any]:
        return {"learner": _stamp(self._given) if self._given else None}


def _stamp(given: Mapping[str, Any]) -> dict[str, Any]:
    return {name: given[name] for name in ("generation", "digest")}


async def _call(box: FeatureBox, script: str, found: list[str], *, user: str | None) -> None:
    argv = ("sh", "-c", script, "sh", _PLACE, f"{_PLACE}/skills", *found)
    done = await box.sandbox.exec(argv, user=user, cwd="/", timeout=60)
    if done.exit_code:
        tail = done.stderr.decode("utf-8", "replace")[-200:]
        raise InfrastructureError(f"{_PLACE} could not be made ready: {tail}")
