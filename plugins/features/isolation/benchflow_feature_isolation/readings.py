"""The decision: as left; clean where that pays and could have been steered; and, where they differ, the evidence.

As left is the score that any other runner would give. A clean reading never raises it.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import shutil
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from benchflow_core.contracts import IsolationRequest, Rewards, RunVerifier, Verdict, private_folder
from benchflow_core.errors import InfrastructureError
from benchflow_feature_isolation.box import CapturedState, ReadingBox, capture, port_name
from benchflow_feature_isolation.clean import Judgement, Undo, judge
from benchflow_feature_isolation.diffs import with_diffs
from benchflow_feature_isolation.evidence import find_culprits, split_covered
from benchflow_feature_isolation.origin import Places, places_of, task_files
from benchflow_feature_isolation.powers import load_table
from benchflow_feature_isolation.shadowing import ImageNames, Shadows, image_names

__all__ = ["verify_fresh"]

_SHOWN: Final = 20


async def verify_fresh(request: IsolationRequest, run: RunVerifier) -> Verdict:
    """Verify a captured state by readings."""
    state = await capture(request)
    try:
        return await _Readings(request, run, state).verdict()
    finally:
        await request.provider.forget(state.snapshot)


class _Readings:
    """The readings of one captured state."""

    def __init__(self, request: IsolationRequest, run: RunVerifier, state: CapturedState) -> None:
        self.request, self.run, self.state = request, run, state
        self.places: Places = places_of(request)
        self.names = ImageNames()
        self.notes: dict[str, Any] = {"policy": "fresh", "readings": {}, "contested": False, "settled_by": None}
        self.runs = 0

    async def verdict(self) -> Verdict:
        request, once = self.request, self.request.soft or self.request.reference_run
        self.own = await task_files(request, self.state.changes, self.places)
        self.box = ReadingBox(request, self.state, self.places, self._judge().always)
        if once:
            return self._as_verdict(await self._read("as_left", (), "", attempts=1 if request.soft else 2))
        async with self._clean_beside() as beside:
            left = counted = await self._read("as_left", (), "", attempts=2)
            if _pays(left) or left.rewards is None:
                judgement, clean = await beside if beside else (await self._judge_by_image(), None)
                if judgement.declared:
                    self.notes["declared"] = list(judgement.declared[:_SHOWN])
                if undos := [*judgement.undos, *await self._ports_of_the_tests(left)]:
                    clean = clean or await self._run(undos, "clean", attempts=2)
                    counted = await self._compare(left, undos, self._note("clean", undos, clean))
        return self._as_verdict(counted)

    @contextlib.asynccontextmanager
    async def _clean_beside(self) -> AsyncIterator[asyncio.Task[tuple[Judgement, Verdict | None]] | None]:
        """Make the clean reading at the same time where there is room for it; it ends when nobody needs it."""

        async def judge_and_read() -> tuple[Judgement, Verdict | None]:
            judgement = await self._judge_by_image()
            return judgement, await self._run(judgement.undos, "clean", attempts=2) if judgement.undos else None

        beside = asyncio.create_task(judge_and_read()) if self.request.spare and not self.state.ports else None
        try:
            yield beside
        finally:
            if beside:
                beside.cancel()
                await asyncio.gather(beside, return_exceptions=True)
                if "clean" not in self.notes["readings"]:
                    self._folder("clean")

    def _judge(self) -> Judgement:
        return judge(self.state.changes, self.places, self.names, self.own)

    async def _judge_by_image(self) -> Judgement:
        if Shadows.possible(self.state.changes):
            self.names = await image_names(self.request, self.places)
        return self._judge()

    async def _ports_of_the_tests(self, left: Verdict) -> list[Undo]:
        """Return the agent's ports that the tests serve themselves, where the reward depends on whose server answers.

        They are found by a reading without any port of the agent's, in which the tests listen there.
        """
        why = load_table(self.places.home, self.places.workdir).rules["port"]["why"]
        names = map(port_name, self.state.ports)
        ports = [Undo(name, "listening", "port", why, name) for name in names]
        if not ports or left.rewards is None:
            return []
        listened: set[int] = set()
        found = await self._read("without_ports", ports, "without-ports", listened=listened)
        return [] if _no_less(found, left) else [undo for undo in ports if undo.path in map(port_name, listened)]

    async def _compare(self, left: Verdict, undos: Sequence[Undo], clean: Verdict) -> Verdict:
        if left.rewards is None:
            if clean.rewards is None:
                return left
            left = await self._read("as_left_again", (), "as-left-again")
            if left.rewards is None:  # it is the agent's changes that keep the verifier from a reward: a failure
                self.notes["settled_by"] = "as-left-failed"
                return replace(left, rewards=dict.fromkeys(clean.rewards, 0.0), error=None)
        if _no_less(clean, left):
            return left
        self.notes |= {"contested": True, "culprits": []}
        again = await self._read("clean_again", undos, "clean-again")
        if _no_less(again, left):
            return self._settle(left, "flake")
        rest, clean = await self._uncovered(left, undos, again if clean.rewards is None else clean)
        if not rest:
            return self._settle(left, "certificate")
        await self._name_culprits(left, rest)
        found = _lower(left.rewards, clean.rewards)
        self.notes |= {"scored": "clean", "scores": {"as-left": left.rewards, "clean": found}}
        return replace(clean, rewards=found)

    async def _uncovered(self, left: Verdict, undos: Sequence[Undo], clean: Verdict) -> tuple[Sequence[Undo], Verdict]:
        """Return the changes that the reference solution does not make, as far as the reward depends on them."""
        ask = self.request.reference
        reference = await ask() if ask else None
        without = {"error": "the task has no reference solution" if ask else "reference solutions are not run here"}
        self.notes["certificate"] = reference.to_json() if reference else without
        if reference is None or reference.error:
            return undos, clean
        covered, rest = split_covered(undos, reference, self.places, self.names)
        self.notes["certificate"]["covered"] = len(covered)
        if not covered or not rest:
            return rest, clean
        found = await self._read("uncovered", rest, "uncovered")
        return ((), found) if _no_less(found, left) else (rest, found)

    async def _name_culprits(self, left: Verdict, undos: Sequence[Undo]) -> None:
        async def differs(some: Sequence[Undo]) -> bool:
            return not _no_less(await self._run(some, None), left)

        culprits = await find_culprits(undos, differs)
        self.notes["culprits"] = await with_diffs(self.box, culprits[:_SHOWN])
        self.notes["culprits_total"] = len(culprits)

    def _settle(self, left: Verdict, by: str) -> Verdict:
        self.notes["settled_by"] = by
        return left

    async def _read(
        self,
        name: str,
        undos: Sequence[Undo],
        place: str,
        attempts: int = 1,
        listened: set[int] | None = None,
    ) -> Verdict:
        try:
            found = await self._run(undos, place, attempts, listened)
        except InfrastructureError as error:
            if name != "as_left":
                raise
            found = Verdict(None, error=error)  # the agent's files may be to blame: the clean reading will tell
        return self._note(name, undos, found)

    async def _run(
        self, undos: Sequence[Undo], place: str | None, attempts: int = 1, listened: set[int] | None = None
    ) -> Verdict:
        """One reading; a failed one is repeated on the same state. Without a place its output is thrown away."""
        self.runs += 1
        with private_folder() as scratch:
            output = scratch / "output" if place is None else self._folder(place)
            return await self.run(lambda: self.box.open(undos, listened), output, attempts)

    def _note(self, name: str, undos: Sequence[Undo], found: Verdict) -> Verdict:
        rows = dict(Counter(undo.row for undo in undos))
        said = {"rewards": found.rewards, "seconds": round(found.seconds, 3), "undone": rows}
        self.notes["readings"][name] = {**said, "error": found.error.message if found.error else None}
        self.request.emit("verifier_reading", {"reading": name, **self.notes["readings"][name]})
        return found

    def _folder(self, place: str) -> Path:
        """The first reading's output is the verification's; others lie beside it, where no file of a box can come."""
        if not place:
            return self.request.output_dir
        folder = self.request.output_dir.with_name(f"{self.request.output_dir.name}-{place}")
        shutil.rmtree(folder, ignore_errors=True)
        return folder

    def _as_verdict(self, counted: Verdict) -> Verdict:
        return replace(
            counted,
            verification={"scored": "as-left", **self.notes, "runs": self.runs},
            changes=self.state.changes if self.request.reference_run else (),
        )


def _pays(reading: Verdict) -> bool:
    return any(value > 0 for value in (reading.rewards or {}).values())


def _no_less(clean: Verdict, left: Verdict) -> bool:
    """Tell whether a clean reading pays no less of anything. What it pays more does not count: as left has failed."""
    if clean.rewards is None or left.rewards is None:
        return False
    return all(clean.rewards.get(name, -math.inf) >= value - 1e-9 for name, value in left.rewards.items())


def _lower(left: Rewards | None, clean: Rewards | None) -> Rewards | None:
    """The clean rewards, none of them above the one as left."""
    if left is None or clean is None:
        return None
    return {name: min(value, left.get(name, value)) for name, value in clean.items()}
