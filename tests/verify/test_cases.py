"""Cheats, honest work and wrecks, all of them data in `cases/`: whatever the wording, each gets what it deserves."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

import pytest
from benchflow_feature_isolation.origin import places_of

from benchflow_core.verify import Verdict
from tests.verify.conftest import Arena, Case, cases, score

SANDBOX = os.environ.get("BENCHFLOW_TEST_SANDBOX", "local")
pytestmark = pytest.mark.asyncio(loop_scope="module")

PRELUDE = """cat > /srv/pay <<'END'
#!/bin/sh
printf '{"reward":1}' > /logs/verifier/reward.json
END
chmod +x /srv/pay
"""
ANSWER = "echo 42 > answer.txt"
CHEATS, HONEST, WRECKS = (cases(kind) for kind in ("cheats", "honest", "wrecks"))


@dataclass(frozen=True)
class Play:
    """What an agent does in a case, and what comes of it."""

    case: Case
    instruction: str
    agent: str
    earns: Literal["full", "nothing", "zero", "contested"]
    """`nothing`: no point, and if as left pays, a culprit. `zero`: a score all the same, never a lost rollout."""
    solution: str | None = None
    naive: bool = False


def plays() -> Iterator[tuple[str, Play]]:
    """Every play with its name; a name with a `+` is for merges."""
    for case in HONEST:
        for number, words in enumerate(case.instructions):
            yield f"{case.name}{number * '+'}", Play(case, words, case.agent, "full", case.agent)
        if case.second:
            earns: Literal["full", "contested"] = "contested" if case.second_is_contested else "full"
            yield f"{case.name}-second", Play(case, case.instructions[0], case.second, earns, case.agent)
        if not case.options:
            needs = replace(case, needs="users" if "users" in case.needs else "")
            yield f"{case.name}-undone", Play(needs, case.instructions[0], "true", "zero")
    for case in CHEATS:
        for number, words in enumerate(case.instructions):
            paid: Literal["full", "nothing"] = "full" if case.same_as_honest else "nothing"
            naive = case.naive and not case.same_as_honest and not number
            yield f"{case.name}{number * '+'}", Play(case, words, PRELUDE + case.agent, paid, ANSWER, naive)
    for case in WRECKS:
        yield case.name, Play(case, case.instructions[0], case.agent, "zero")


PLAYS = dict(plays())


async def played(arena: Arena, play: Play, tests: Mapping[str, str] | None = None) -> Verdict:
    """Play it, and see what it is paid."""
    arena.need(play.case.needs)
    if play.case.boxes and SANDBOX not in play.case.boxes:
        pytest.skip(f"works on {play.case.boxes} only")
    return await arena.play(
        play.agent,
        tests or play.case.tests,
        instruction=play.instruction,
        options=play.case.options,
        solution=play.solution,
    )


@pytest.mark.parametrize(
    "play", [pytest.param(p, id=name, marks=pytest.mark.merge if "+" in name else ()) for name, p in PLAYS.items()]
)
async def test_everybody_gets_what_they_deserve(arena: Arena, play: Play) -> None:
    if play.naive:
        arena.need(play.case.needs)
        if not play.case.boxes or SANDBOX in play.case.boxes:
            assert await arena.naive(play.agent, play.case.tests) == 1.0, (
                "the cheat does not even work on a naive runner"
            )
    verdict = await played(arena, play)
    known = verdict.verification
    assert verdict.isolation == "fresh"
    log = arena.folder / f"out{arena.count}-None" / "log.txt"
    if play.earns == "full":
        assert score(verdict) == 1.0, (verdict, log.read_text() if log.exists() else "")
    elif play.earns == "zero":
        assert verdict.rewards == {"reward": 0.0}, verdict
    else:
        assert score(verdict) in (None, 0.0), verdict
    if play.earns == "contested" or (
        play.earns == "nothing" and known["readings"]["as_left"]["rewards"] == {"reward": 1}
    ):
        assert known["contested"] and known["scored"] == "clean", known
        assert known["culprits"], "what the reward depends on is named"


def words(name: str) -> str:
    """Sixty words that mean nothing."""
    dice = random.Random(name)
    return " ".join("".join(dice.choices("abcdefghijklmnop", k=7)) for _ in range(60))


async def test_no_text_of_a_task_is_an_input_of_the_decision(arena: Arena) -> None:
    """What is known of a task besides its changes is the same when every text in it is random words."""
    async with arena.agent() as box:
        for case in (*HONEST, *CHEATS):
            random_words = {name: words(name) for name in case.tests}
            as_written = arena.task(case.tests, instruction=case.instructions[0], options=case.options)
            as_random = arena.task(random_words, instruction=words(case.name), options=case.options)
            assert places_of(arena.request(as_written, box)) == places_of(arena.request(as_random, box)), case.name


SOME = [name for name in PLAYS if "+" not in name and "-undone" not in name][::11]


@pytest.mark.merge
@pytest.mark.parametrize("name", SOME)
async def test_random_words_change_no_decision(arena: Arena, name: str) -> None:
    """Random words as instruction, and in comments of the tests: the same readings and the same evidence."""
    play = PLAYS[name]
    tests = {n: f"{t}\n# {words(n)}\n" if n.endswith((".sh", ".py")) else t for n, t in play.case.tests.items()}
    found = []
    for verdict in (await played(arena, play), await played(arena, replace(play, instruction=words(name)), tests)):
        known = verdict.verification
        decided = [known.get(key) for key in ("contested", "settled_by", "scored", "culprits")]
        found.append((verdict.rewards, decided, list(known["readings"])))
    assert found[0] == found[1]
