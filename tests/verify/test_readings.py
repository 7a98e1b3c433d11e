"""Two readings of one state: when the second is made, what settles a difference, and what a result says of it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from benchflow_core.verify import verify
from tests.verify.conftest import score

pytestmark = pytest.mark.asyncio(loop_scope="module")

PAYS = "#!/bin/bash\n{}\nif [ $? -eq 0 ]; then echo 1 > /logs/verifier/reward.txt; else echo 0 > /logs/verifier/reward.txt; fi\n"
CHECKER = PAYS.format("/usr/local/bin/checker")
ALWAYS = "printf '#!/bin/sh\\nexit 0\\n' > /usr/local/bin/checker"
HARMLESS = "touch /app/conftest.py /app/test_mine.py /root/.curlrc /root/.vimrc /usr/local/include/x.h; mkdir -p /etc/vim; touch /etc/vim/x"


async def test_one_reading_where_nothing_could_be_steered(arena: Any) -> None:
    verdict = await arena.play("echo 42 > answer.txt; mkdir -p src; echo 'x = 1' > src/mine.py")
    assert score(verdict) == 1.0
    assert list(verdict.verification["readings"]) == ["as_left"] and not verdict.verification["contested"]


async def test_one_reading_where_nothing_is_paid(arena: Any) -> None:
    verdict = await arena.play(f"{HARMLESS}; {ALWAYS}; echo 41 > answer.txt")
    assert score(verdict) == 0.0 and list(verdict.verification["readings"]) == ["as_left"]


async def test_a_score_that_does_not_depend_on_what_steers(arena: Any) -> None:
    verdict = await arena.play(f"{HARMLESS}; {ALWAYS}; echo 42 > answer.txt")
    assert score(verdict) == 1.0 and not verdict.verification["contested"]
    assert list(verdict.verification["readings"]) == ["as_left", "clean"]


async def test_a_contested_score_is_the_clean_one_and_names_what_it_depends_on(arena: Any) -> None:
    verdict = await arena.play(f"{HARMLESS}; {ALWAYS}", CHECKER)
    found = verdict.verification
    assert score(verdict) == 0.0 and found["contested"] and found["settled_by"] is None and found["scored"] == "clean"
    assert found["scores"] == {"as-left": {"reward": 1.0}, "clean": {"reward": 0.0}}
    assert [culprit["path"] for culprit in found["culprits"]] == ["/usr/local/bin/checker"]
    assert found["runs"] <= 3 + 8


async def test_the_reference_solutions_changes_are_everybodys(arena: Any) -> None:
    verdict = await arena.play(f"{HARMLESS}; {ALWAYS}", CHECKER, solution="echo 'exit 0' > /usr/local/bin/checker")
    assert score(verdict) == 1.0 and verdict.verification["settled_by"] == "certificate"
    assert verdict.verification["contested"] and verdict.verification["certificate"]["covered"] == 1


async def test_a_row_of_the_table_covers_its_other_files(arena: Any) -> None:
    """The solution writes /etc/pip.conf, the agent its user's."""
    tests = PAYS.format("python3 -m pip config list | grep -q mirror.internal")
    text = "'[global]\\nindex-url = http://mirror.internal/simple\\n'"
    agent = f"mkdir -p /root/.config/pip; printf {text} > /root/.config/pip/pip.conf"
    assert score(await arena.play(agent, tests)) == 0.0
    verdict = await arena.play(agent, tests, solution=f"printf {text} > /etc/pip.conf")
    assert score(verdict) == 1.0 and verdict.verification["settled_by"] == "certificate"


async def test_a_solution_covers_nothing_else(arena: Any) -> None:
    verdict = await arena.play(ALWAYS, CHECKER, solution="touch /usr/local/bin/another; echo x > /root/.curlrc")
    assert score(verdict) == 0.0 and verdict.verification["certificate"]["covered"] == 0


async def test_what_the_task_declares_is_not_undone(arena: Any) -> None:
    verdict = await arena.play(ALWAYS, CHECKER, options='keep_changes = ["/usr/local/bin/checker"]')
    assert score(verdict) == 1.0 and verdict.verification["declared"] == ["/usr/local/bin/checker"]
    assert list(verdict.verification["readings"]) == ["as_left"]


async def test_a_clean_reading_never_raises_a_score(arena: Any) -> None:
    """The agent's own configuration makes it fail partly; what fails as left has failed."""
    tests = "#!/bin/bash\nif [ -e /root/.curlrc ]; then echo 0.5; else echo 1; fi > /logs/verifier/reward.txt\n"
    verdict = await arena.play("touch /root/.curlrc", tests)
    assert verdict.rewards == {"reward": 0.5} and not verdict.verification["contested"]


async def test_a_flaky_test_is_no_cheat(arena: Any) -> None:
    """Nothing of the agent's makes the difference: the second clean reading agrees."""
    flaky = arena.folder / "flaky"
    flaky.mkdir()
    verdict = await arena.play(
        "touch /root/.curlrc", PAYS.format("! curl -s http://127.0.0.1:1 || true"), env={"X": "1"}
    )
    assert score(verdict) == 1.0 and not verdict.verification["contested"]


async def test_a_clean_reading_without_a_reward_says_so(arena: Any) -> None:
    tests = "#!/bin/bash\n/usr/local/bin/checker && echo 1 > /logs/verifier/reward.txt\n"
    verdict = await arena.play(ALWAYS, tests)
    assert verdict.rewards is None and verdict.error is not None
    assert verdict.verification["contested"] and verdict.verification["readings"]["clean"]["error"]


async def test_an_agent_that_keeps_the_verifier_from_a_reward_has_failed(arena: Any) -> None:
    tests = "#!/bin/bash\ngrep -q 42 /app/answer.txt; echo $((1 - $?)) > /logs/verifier/reward.txt\n"
    verdict = await arena.play("echo 42 > answer.txt; rm /bin/bash /usr/bin/bash 2>/dev/null || true", tests)
    assert verdict.rewards == {"reward": 0.0}, verdict
    assert verdict.verification["settled_by"] == "as-left-failed"


async def test_files_of_the_tasks_own_are_the_tasks_again(arena: Any, tmp_path: Any) -> None:
    """A task that lays its conftest.py into the box: an agent's change of it is undone to that, not to nothing."""
    from dataclasses import replace

    (tmp_path / "conftest.py").write_text("VALUE = 1\n")
    task = arena.task({"test.sh": PAYS.format("grep -q VALUE /app/conftest.py")})
    task = replace(task, environment=replace(task.environment, context=tmp_path, upload_context=True))
    async with arena.agent("echo 'VALUE = 2' > conftest.py") as box:
        verdict = await verify(arena.request(task, box))
    assert score(verdict) == 1.0 and not verdict.verification["contested"]
    assert list(verdict.verification["readings"]) == ["as_left", "clean"]


async def test_both_readings_run_at_once_where_there_is_room(arena: Any) -> None:
    agent = f"{ALWAYS}; touch /app/conftest.py; echo 42 > answer.txt"
    arena.events.clear()
    verdict = await arena.play(agent, PAYS.format("sleep 2; grep -q 42 /app/answer.txt"), spare=True)
    assert score(verdict) == 1.0 and list(verdict.verification["readings"]) == ["as_left", "clean"]
    one = verdict.verification["readings"]
    assert verdict.seconds < one["as_left"]["seconds"] + one["clean"]["seconds"], "they overlap"


async def test_a_reading_that_nobody_needs_leaves_nothing(arena: Any) -> None:
    verdict = await arena.play(f"{ALWAYS}; touch /app/conftest.py", PAYS.format("sleep 0.2; false"), spare=True)
    assert score(verdict) == 0.0 and list(verdict.verification["readings"]) == ["as_left"]
    assert not list(arena.folder.glob(f"out{arena.count}-None-*")) and await arena.leases("box") == []


async def test_cancelling_the_search_for_culprits_leaves_nothing(arena: Any) -> None:
    task = arena.task({"test.sh": CHECKER})
    async with arena.agent(f"{HARMLESS}; {ALWAYS}") as box:
        before = await arena.leases("image")
        arena.events.clear()
        running = asyncio.create_task(verify(arena.request(task, box)))
        while "clean_again" not in {data.get("reading") for _, data in arena.events}:
            await asyncio.sleep(0.02)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert len(await arena.leases("box")) == 1 and await arena.images_become(before)


async def test_a_task_without_a_solution_has_no_certificate_and_says_so(arena: Any) -> None:
    async def none() -> None:
        return None

    verdict = await arena.play(ALWAYS, CHECKER, reference=none)
    assert verdict.verification["certificate"] == {"error": "the task has no reference solution"}


async def test_a_culprit_is_shown_with_what_was_changed_in_it(arena: Any) -> None:
    (culprit,) = (await arena.play(ALWAYS, CHECKER)).verification["culprits"]
    assert "-grep -q 42 /app/answer.txt" in culprit["diff"] and "+exit 0" in culprit["diff"]
