"""Skills in the box: laid where each agent looks for them, and counted when they are called."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from benchflow_core.contracts import FeatureBox, FeatureRun, RunView
from benchflow_core.errors import InfrastructureError, SandboxLost, TaskError
from benchflow_feature_standard.skills.folders import CASES, without_cases
from benchflow_feature_standard.skills.places import all_places, place_of, places
from benchflow_feature_standard.skills.plan import GENERATED, SkillPlan

__all__ = ["SkillRun"]

_LINK = 'mkdir -p "$1" "$(dirname "$2")" && chmod 777 "$1" && rm -rf "$2" && ln -s "$1" "$2"'


class SkillRun(FeatureRun):
    """The skills of one rollout."""

    def __init__(self, planned: SkillPlan, run: RunView) -> None:
        self._plan, self._run = planned, run
        self._calls: set[tuple[str, int | None, Any]] = set()
        self._as_made = False
        """No agent was in the box yet: what is there is the image's."""

    @asynccontextmanager
    async def box(self, box: FeatureBox) -> AsyncIterator[None]:
        self._as_made = self._run.saved is None
        yield

    @asynccontextmanager
    async def agent(self, box: FeatureBox) -> AsyncIterator[None]:
        """Lay skills into each agent's own place, as its user; never into a prompt."""
        if self._plan.without and self._as_made:
            await self._refuse_skills_of_image(box)
        self._as_made = False
        await self._bring_own(box)
        if self._plan.folders or self._plan.generated:
            await self._bring(box)
        yield
        if self._plan.generated:
            await self._fetch_generated(box)

    async def _refuse_skills_of_image(self, box: FeatureBox) -> None:
        """Skills that an image makes for itself are in no context: better no score than one under a wrong name."""
        task = self._plan.task
        found = list(filter(None, (task.environment.skills_dir, *all_places(box, self._plan.agents))))
        if not found:
            return
        done = await box.sandbox.exec(("find", "-L", *found, "-name", "SKILL.md"), user="root", cwd="/", timeout=60)
        if done.stdout.strip():
            first = done.stdout.decode("utf-8", "replace").split("\n")[0]
            raise TaskError(f"the image of task '{task.name}' has skills that it makes itself: {first}.")

    async def _bring_own(self, box: FeatureBox) -> None:
        for role, folders in self._plan.by_role.items():
            home = box.home_of(role)
            made = await box.sandbox.exec(("mkdir", "-p", home), user=box.user, cwd="/", timeout=60)
            if made.exit_code:
                raise InfrastructureError(f"a home for role '{role}' could not be made in {home}.")
            place = place_of(self._plan.agents[role], home, box.workdir)
            for folder in folders if place else ():
                await self._lay(box, folder, f"{place}/{folder.name}")
            names = [folder.name for folder in folders]
            self._run.event("skills", {"names": names, "places": [place], "generated": False}, role=role)

    async def _bring(self, box: FeatureBox) -> None:
        generated, found = _generated(box), places(box, self._plan.agents)
        if self._kept.is_dir():  # of an earlier step
            await box.sandbox.upload(self._kept, generated, user=box.user)
        for place in found:
            for folder in self._plan.folders:
                await self._lay(box, folder, f"{place}/{folder.name}")
            if self._plan.generated:
                argv = ("sh", "-c", _LINK, "sh", generated, place)
                done = await box.sandbox.exec(argv, user=box.user, cwd="/", timeout=60)
                if done.exit_code:
                    raise InfrastructureError(f"the place for skills {place} could not be made.")
        names = [folder.name for folder in self._plan.folders]
        self._run.event("skills", {"names": names, "places": found, "generated": self._plan.generated})

    async def _lay(self, box: FeatureBox, folder: Path, target: str) -> None:
        source = folder.resolve()
        if (source / CASES).is_file():
            copy = self._run.work_dir / f"skill-{hashlib.sha256(bytes(source)).hexdigest()[:16]}"
            if not copy.exists():
                shutil.copytree(source, copy, symlinks=True, ignore=without_cases)
            source = copy
        await box.sandbox.upload(source, target, user=box.user)

    @property
    def _kept(self) -> Path:
        return self._run.dir / "artifacts" / GENERATED

    async def _fetch_generated(self, box: FeatureBox) -> None:
        """Take what was generated out of the box: it is an artifact, and not in the verifier's way."""
        incoming = self._kept.with_name(f".incoming-{GENERATED}")
        incoming.parent.mkdir(exist_ok=True)
        with suppress(FileNotFoundError, InfrastructureError):
            await box.sandbox.download(_generated(box), incoming)
            shutil.rmtree(self._kept, ignore_errors=True)
            incoming.rename(self._kept)
        shutil.rmtree(incoming, ignore_errors=True)
        with suppress(SandboxLost):
            await box.sandbox.exec(("rm", "-rf", _generated(box)), user="root", cwd="/", timeout=60)

    def update(self, role: str, turn: int | None, kind: str, data: Mapping[str, Any]) -> None:
        """Count the skill that a tool call loads, once; what the agent's plugin cannot tell is not counted."""
        key = (role, turn, data.get("toolCallId"))
        if kind not in ("tool_call", "tool_call_update") or key in self._calls:
            return
        with suppress(Exception):
            if skill := self._plan.agents[role].spec.skill_call(data):
                self._calls.add(key)
                self._run.event("skill_invoked", {"toolCallId": key[2], "skill": str(skill)}, role=role)

    def result(self) -> Mapping[str, Any]:
        return {"skill_mode": self._run.settings.get("skill_mode"), "n_skill_invocations": len(self._calls)}

    def lock(self) -> Mapping[str, Any]:
        return {"skills": dict(self._plan.digests)}


def _generated(box: FeatureBox) -> str:
    return f"{box.workdir.rstrip('/')}/{GENERATED}"
