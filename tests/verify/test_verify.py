"""Verification as a step: policies, the reward channel, repetition, ports, findings, and that nothing is left behind."""

from __future__ import annotations

import asyncio
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchflow_core.contracts import (
    Artifact,
    NetworkPolicy,
    Step,
    TaskEnvironment,
    VerifierSettings,
    VerifierSpec,
    VerifyContext,
    VerifyResult,
)
from benchflow_core.errors import CapabilityMissing, RewardInvalid, RewardMissing, VerifierError, VerifierTimeout
from benchflow_core.plugins import Loaded, Registry
from benchflow_core.plugins.policy import Policy
from benchflow_core.results.redact import Redactor
from benchflow_core.rollout.collect import collect_artifacts
from benchflow_core.verify import policies, soft_verify, verify

pytestmark = pytest.mark.asyncio(loop_scope="module")

REWARD = "/logs/verifier/reward.txt"
ONE = f"#!/bin/bash\necho 1 > {REWARD}\n"


# --- policies ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("capabilities", "changed", "expected"),
    [
        ({"snapshot", "changes"}, {}, ["fresh", "shared"]),
        ({"snapshot"}, {}, ["shared"]),
        (set(), {}, ["shared"]),
        ({"snapshot", "changes"}, {"isolation": "shared"}, ["shared"]),
        ({"snapshot", "changes"}, {"environment": TaskEnvironment()}, ["separate"]),
        ({"snapshot", "changes"}, {"service": "db"}, ["shared"]),
        (set(), {"isolation": "fresh"}, ["fresh"]),
    ],
)
async def test_policies(arena: Any, capabilities: set[str], changed: dict[str, Any], expected: list[str]) -> None:
    task = arena.task({"test.sh": ONE})
    assert policies(task, replace(task.verifier, **changed), frozenset(capabilities)) == expected


async def test_services_beside_main_are_captured_or_rule_out_a_snapshot(arena: Any) -> None:
    task = arena.task({"test.sh": ONE})
    task = replace(task, environment=replace(task.environment, compose=Path("docker-compose.yaml")))
    plain = frozenset({"snapshot", "changes"})
    assert policies(task, task.verifier, plain) == ["shared"]
    whole = plain | {"snapshot-compose"}
    assert policies(task, task.verifier, whole) == ["fresh", "shared"]
    assert policies(task, replace(task.verifier, service="db"), whole) == ["shared"]
    prepared = replace(task, environment=replace(task.environment, setup=("true",)))
    assert policies(prepared, task.verifier, whole) == ["shared"], "what those commands change is not the agent's"


async def test_stepping_down_is_said_aloud(arena: Any) -> None:
    verdict = await arena.play("true", ONE, capabilities=frozenset({"ports"}))
    assert verdict.isolation == "shared" and "changes and snapshot" in verdict.notices[0]
    verdict = await arena.play("true", ONE, "shared")
    assert verdict.isolation == "shared" and "it was asked for" in verdict.notices[0]
    assert (await arena.play("true", ONE)).notices == ()


async def test_a_wish_that_cannot_be_had_is_refused(arena: Any) -> None:
    with pytest.raises(CapabilityMissing, match=r"'fresh' cannot be had .*snapshot.*Possible: shared"):
        await arena.play("true", ONE, "fresh", capabilities=frozenset())
    with pytest.raises(CapabilityMissing, match="demands verifier isolation 'fresh'"):
        await arena.play("true", ONE, options='isolation = "fresh"', capabilities=frozenset())


async def test_without_the_feature_the_message_names_its_package(arena: Any) -> None:
    bare = Registry(Policy.read({}, none=True))
    with pytest.raises(
        CapabilityMissing, match=r"(?s)'fresh'.*Installed: shared, separate.*benchflow-feature-isolation"
    ):
        await arena.play("true", ONE, "fresh", plugins=bare)
    verdict = await arena.play("true", ONE, plugins=bare)
    assert verdict.isolation == "shared" and "benchflow-feature-isolation" in verdict.notices[0]


# --- the reward -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("script", "error"),
    [
        ("exit 3", RewardMissing),
        (f": > {REWARD}", VerifierError),
        (f"echo nan > {REWARD}", RewardInvalid),
        (f"echo 1e999 > {REWARD}", RewardInvalid),
        (f"echo 1 > /tmp/x; ln -s /tmp/x {REWARD}", VerifierError),
        (f"mkdir {REWARD}", VerifierError),
        (f"mkfifo {REWARD}", VerifierError),
        (f"head -c 2000000 /dev/zero | tr '\\0' 1 > {REWARD}", VerifierError),
        ("rm -rf /logs/verifier; mkdir /tmp/v; echo 1 > /tmp/v/reward.txt; ln -s /tmp/v /logs/verifier", VerifierError),
        (f"truncate -s 10G /logs/verifier/huge; mkdir {REWARD}", VerifierError),
    ],
)
async def test_unreadable_rewards_are_no_score(arena: Any, script: str, error: type[VerifierError]) -> None:
    verdict = await arena.play("true", f"#!/bin/bash\n{script}\n")
    assert verdict.rewards is None and isinstance(verdict.error, error), verdict
    assert len(verdict.details["failed_attempts"]) == 2, "it is verified once more"


async def test_a_huge_log_does_not_hide_the_reward(arena: Any) -> None:
    verdict = await arena.play("true", f"#!/bin/bash\ntruncate -s 10G /logs/verifier/huge; echo 0.5 > {REWARD}\n")
    assert verdict.rewards == {"reward": 0.5}
    assert (arena.folder / f"out{arena.count}-None" / "verifier-output-left-behind.txt").exists()


async def test_every_process_is_dead_before_the_reward_is_read(arena: Any) -> None:
    """The script leaves behind a loop that would pay, whichever way it hides."""
    loop = f"while :; do echo 1 > {REWARD}; done"
    script = f"#!/bin/bash\n(setsid nohup bash -c 'sleep 0.3; {loop}' >/dev/null 2>&1 &)\necho 0 > {REWARD}\n"
    verdict = await arena.play("true", script)
    assert verdict.rewards == {"reward": 0.0}


async def test_a_failed_verification_is_repeated_on_the_same_state(arena: Any) -> None:
    """The second box is as the first one was: what the first run did is not there."""
    script = f"#!/bin/bash\n[ -e /app/ran ] && echo 0 > {REWARD}; touch /app/ran; exit 1\n"
    verdict = await arena.play("true", script)
    assert verdict.rewards is None and [f["code"] for f in verdict.details["failed_attempts"]] == ["reward_missing"] * 2
    output = arena.folder / f"out{arena.count}-None"
    assert (output / "attempt-1" / "test-stdout.txt").exists() and (output / "test-stdout.txt").exists()


async def test_time_out(arena: Any) -> None:
    task = arena.task({"test.sh": "#!/bin/bash\necho started; sleep 60\n"})
    async with arena.agent("true") as box:
        request = arena.request(task, box, settings=replace(task.verifier, timeout=0.5))
        verdict = await verify(request)
    assert isinstance(verdict.error, VerifierTimeout) and verdict.seconds < 20
    assert (request.output_dir / "test-stdout.txt").read_text() == "started\n"


# --- the script -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("#!/no/such/shell\n", "could not be started"),
        ("#!/bin/bash\r\necho 1\r\n", "Windows line endings"),
    ],
)
async def test_scripts_that_cannot_run_are_named(arena: Any, script: str, message: str) -> None:
    verdict = await arena.play("true", script)
    assert verdict.error is not None and message in verdict.error.message and verdict.error.remedy


async def test_a_script_without_a_first_line_is_run_by_a_shell(arena: Any) -> None:
    assert (await arena.play("true", f"[[ a == a ]] && echo 1 > {REWARD}\n")).rewards == {"reward": 1.0}


async def test_output_is_kept_in_order_with_the_logs(arena: Any) -> None:
    ctrf = '{"results": {"tests": [{"name": "a", "status": "passed"}, {"name": "b", "status": "failed", "message": "no"}]}}'
    script = "#!/bin/bash\necho out; echo err >&2; echo out2\nmkdir /logs/verifier/sub; echo x > /logs/verifier/sub/f\n"
    verdict = await arena.play(
        "true", script + f"echo '{ctrf}' > /logs/verifier/ctrf.json; echo 1 > {REWARD}; exit 9\n"
    )
    output = arena.folder / f"out{arena.count}-None"
    assert (output / "test-stdout.txt").read_text() == "out\nerr\nout2\n"
    assert (output / "sub" / "f").read_text() == "x\n"
    assert [(t.name, t.status, t.message) for t in verdict.tests] == [("a", "passed", ""), ("b", "failed", "no")]
    assert verdict.rewards == {"reward": 1.0} and verdict.details["exit_code"] == 9


async def test_tests_are_laid_over_each_other(arena: Any, tmp_path: Path) -> None:
    task = arena.task({"test.sh": "#!/bin/bash\nexit 1\n", "kept": "1\n"})
    (tmp_path / "test.sh").write_text(f"#!/bin/bash\ncat /tests/kept > {REWARD}\n")
    async with arena.agent("true") as box:
        settings = replace(task.verifier, tests=(*task.verifier.tests, tmp_path))
        assert (await verify(arena.request(task, box, settings=settings))).rewards == {"reward": 1.0}


async def test_the_verifiers_environment_is_ours(arena: Any) -> None:
    agent = "echo 'export EVIL=1' | tee -a /etc/profile /etc/bash.bashrc /root/.bashrc /root/.profile >/dev/null"
    script = f'#!/bin/bash\n[ -z "$EVIL" ] && [ "$GIVEN" = yes ] && [ "$HOME" = /root ] && [ "$PWD" = /app ] && echo 1 > {REWARD}\n'
    assert (await arena.play(agent, script, env={"GIVEN": "yes"})).rewards == {"reward": 1.0}


async def test_another_user(arena: Any) -> None:
    task = arena.task({"test.sh": f'#!/bin/bash\n[ "$(id -un)" = nobody ] && echo 1 > {REWARD}\n'})
    if "users" not in arena.capabilities:
        pytest.skip("one user only")
    async with arena.agent("printf 'x = 1\\n' > /app/mod.py") as box:
        request = arena.request(task, box, settings=replace(task.verifier, user="nobody"))
        assert (await verify(request)).rewards == {"reward": 1.0}


# --- what is found ----------------------------------------------------------------------------------------------------


async def test_live_state_is_said_to_be_missing_when_it_fails(arena: Any) -> None:
    agent = "(setsid sleep 100 >/dev/null 2>&1 &)"
    zero = f"#!/bin/bash\necho 0 > {REWARD}\n"
    assert [f["code"] for f in (await arena.play(agent, zero)).findings] == ["live-state-not-carried"]
    assert [f["code"] for f in (await arena.play("true", zero)).findings] == []
    assert [f["code"] for f in (await arena.play(agent, ONE)).findings] == []


# --- shared and separate ----------------------------------------------------------------------------------------------


async def test_shared_sees_live_processes_and_clears_the_output(arena: Any) -> None:
    agent = "echo 1 > /logs/verifier/reward.json; mkdir -p /tests; echo x > /tests/planted; (setsid sleep 100 >/dev/null 2>&1 &)"
    script = f"#!/bin/bash\n[ ! -e /tests/planted ] && pgrep -x sleep >/dev/null && echo 1 > {REWARD}\n"
    task = arena.task({"test.sh": script})
    async with arena.agent(agent) as box:
        verdict = await verify(arena.request(task, box, "shared"))
        assert verdict.rewards == {"reward": 1.0}, verdict
        assert (await box.exec(("/bin/ls", "/tests"))).exit_code != 0, "hidden tests do not stay in the agent's box"


async def test_shared_spares_what_later_steps_need(arena: Any) -> None:
    task = arena.task({"test.sh": ONE})
    steps = (Step("one", "x", verifier=task.verifier), Step("two", "y", verifier=task.verifier))
    task = replace(task, steps=steps)
    async with arena.agent("(setsid sleep 100 >/dev/null 2>&1 &)") as box:
        await verify(arena.request(task, box, "shared", step=steps[0]))
        assert await box.processes()
        await verify(arena.request(task, box, "shared", step=steps[1]))
        assert not await box.processes()


async def test_artifacts_come_to_their_places_and_nothing_else(arena: Any, tmp_path: Path) -> None:
    script = "mkdir -p /logs/artifacts /app/out/deep; echo 1 > out/deep/a; echo 2 > out/b; mkdir /app/none"
    wanted = (
        Artifact("out"),
        Artifact("/app/out/b", "named/b"),
        Artifact("none"),
        Artifact("missing"),
        Artifact("out/b", "named/b"),
    )
    async with arena.agent(script) as box:
        await collect_artifacts(box, wanted, "/app", tmp_path / "artifacts", Redactor())
    found = {str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*") if p.is_file()}
    assert found == {f"artifacts/{name}" for name in ("app/out/deep/a", "app/out/b", "named/b", "manifest.json")}
    manifest = json.loads((tmp_path / "artifacts/manifest.json").read_text())
    assert [entry["status"] for entry in manifest] == ["empty", "ok", "ok", "empty", "failed", "skipped"]
    assert [p.name for p in tmp_path.iterdir()] == ["artifacts"], "nothing of ours stays beside it"


async def test_separate_carries_only_declared_artifacts(arena: Any) -> None:
    task = arena.task({"test.sh": f"#!/bin/bash\n[ -e /app/out/a ] && [ ! -e /app/other ] && echo 1 > {REWARD}\n"})
    task = replace(task, artifacts=(Artifact("out"), Artifact("/nothing")))
    settings = replace(task.verifier, isolation="separate")
    agent = "mkdir out; echo 1 > out/a; ln -s /etc/passwd out/l; touch other; rm /usr/bin/cat; printf '#!/bin/sh\\nexit 1\\n' > /usr/bin/cat"
    async with arena.agent(agent) as box:
        verdict = await verify(arena.request(task, box, settings=settings))
    assert verdict.rewards == {"reward": 1.0} and verdict.isolation == "separate" and verdict.notices == ()


async def test_separate_in_an_image_of_its_own(arena: Any, tmp_path: Path) -> None:
    (tmp_path / "test.sh").write_text(f"#!/bin/bash\ncat /app/out > {REWARD}\n")
    (tmp_path / "Dockerfile").write_text(
        "FROM debian:12\nCOPY test.sh /tests/test.sh\nRUN chmod +x /tests/test.sh\nWORKDIR /srv\n"
    )
    own = TaskEnvironment(context=tmp_path, dockerfile=tmp_path / "Dockerfile", network=NetworkPolicy("none"))
    task = replace(arena.task({"test.sh": ONE}), artifacts=(Artifact("/app/out"),))
    settings = VerifierSettings(isolation="separate", environment=own)
    async with arena.agent("echo 1 > out") as box:
        assert (await verify(arena.request(task, box, settings=settings))).rewards == {"reward": 1.0}


# --- other verifiers -------------------------------------------------------------------------------------------------


def _loaded(run: Any, **more: Any) -> Loaded:
    spec = VerifierSpec(summary="a test's", methods=frozenset({"x"}), verify=run, **more)
    return Loaded(kind="verifier", name="mine", distribution="", version="", spec=spec)


async def test_a_verifier_without_a_box_gets_none(arena: Any) -> None:
    async def judge(context: VerifyContext) -> VerifyResult:
        assert (await context.collect(0)).files == {}
        return VerifyResult({"reward": 0.7})

    task = arena.task({"test.sh": ONE})
    async with arena.agent("true") as box:
        before = await arena.leases("image")
        verdict = await verify(arena.request(task, box, verifier=_loaded(judge, needs_box=False)))
        assert verdict.rewards == {"reward": 0.7} and await arena.images_become(before)


async def test_a_verifier_that_crashes_is_a_verifier_error(arena: Any) -> None:
    async def crash(context: VerifyContext) -> VerifyResult:
        raise KeyError("oops")

    task = arena.task({"test.sh": ONE})
    async with arena.agent("true") as box:
        verdict = await verify(arena.request(task, box, verifier=_loaded(crash)))
    assert verdict.error is not None and "verifier 'mine' crashed: KeyError" in verdict.error.message
    assert len(verdict.details["failed_attempts"]) == 2


# --- between turns ----------------------------------------------------------------------------------------------------


async def test_soft_verification_leaves_nothing_in_the_agents_box(arena: Any) -> None:
    task = arena.task({"test.sh": f"#!/bin/bash\necho seen; cat /app/a > {REWARD}\n"})
    async with arena.agent("echo 0 > a; (setsid sleep 100 >/dev/null 2>&1 &)") as box:
        first = await soft_verify(arena.request(task, box))
        await box.exec(("/bin/sh", "-c", "echo 1 > /app/a"))
        second = await soft_verify(replace(arena.request(task, box), output_dir=arena.folder / "soft2"))
        assert (first.rewards, second.rewards, second.output) == ({"reward": 0.0}, {"reward": 1.0}, "seen\n")
        assert await box.processes(), "the agent's processes go on"
        assert not (await box.exec(("/bin/ls", "-A", "/tests"))).stdout


async def test_soft_verification_that_fails_says_why(arena: Any) -> None:
    task = arena.task({"test.sh": "#!/bin/bash\nexit 1\n"})
    async with arena.agent("true") as box:
        verdict = await soft_verify(arena.request(task, box))
    assert verdict.rewards is None and verdict.error


# --- nothing is left behind -------------------------------------------------------------------------------------------


async def test_cancelling_leaves_nothing(arena: Any) -> None:
    task = arena.task({"test.sh": "#!/bin/bash\nsleep 60\n"})
    async with arena.agent("(setsid python3 -m http.server 8000 >/dev/null 2>&1 &) ; sleep 0.5") as box:
        before = await arena.leases("image")
        running = asyncio.create_task(verify(arena.request(task, box)))
        while len(await arena.leases("box")) < 2:
            await asyncio.sleep(0.05)
        await asyncio.sleep(0.2)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert len(await arena.leases("box")) == 1 and await arena.images_become(before)
    assert await arena.leases("box") == []


async def test_verifications_leave_no_snapshot(arena: Any) -> None:
    before = await arena.leases("image")
    await arena.play("true", ONE)
    await arena.play("true", "#!/bin/bash\nexit 1\n")
    assert await arena.leases("box") == [] and await arena.images_become(before)


async def test_descriptors_do_not_pile_up(arena: Any) -> None:
    agent = "(setsid python3 -m http.server 8000 >/dev/null 2>&1 &) ; sleep 0.5; echo x > y.py"
    await arena.play(agent, ONE)
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        await arena.play(agent, ONE)
    assert len(os.listdir("/proc/self/fd")) <= before + 2
