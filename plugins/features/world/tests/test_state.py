"""Snapshot, restore, reset and branch of a living world."""

from __future__ import annotations

import asyncio
import json

import pytest

from benchflow_core.errors import CapabilityMissing, ConfigurationError

from .conftest import GET, MANIFEST

TWO = (
    MANIFEST
    + """
[[environment.services]]
name = "other"
command = "kvd --db /data/other.db --port 9702"
port = 9702
"""
)


@pytest.fixture
async def opened(task, rollout):
    """A rollout whose world is up; yields a function that starts it."""
    made = []

    async def start(folder, agent="oracle", **settings):
        one = await rollout(folder, agent, **settings)
        made.append(one)
        await one.setup()
        await one.start()
        await one.install_agent()
        return one

    yield start
    for one in made:
        await one.cleanup()


async def ask(one, path, port=9700):
    done = await one.sandbox.exec(("sh", "-c", f"{GET} 'http://localhost:{port}{path}'"), timeout=20)
    assert done.exit_code == 0, done.stderr
    return json.loads(done.stdout)


async def test_a_world_goes_back_and_forth(task, opened):
    one = await opened(task())
    await ask(one, "/set?a=1")
    first = await one.feature("world").world.snapshot()
    await ask(one, "/set?a=2&b=3")
    state = await one.feature("world").world.query()
    assert state.services["kv"]["alive"] and [r["id"] for r in state.changed["kv"]["added"]] == ["a", "b"]
    await one.feature("world").world.restore(first)
    assert await ask(one, "/all") == {"a": "1"}
    await ask(one, "/set?c=4")
    await one.feature("world").world.reset()
    assert await ask(one, "/all") == {}
    await one.feature("world").world.restore(first)
    assert await ask(one, "/all") == {"a": "1"}


async def test_files_and_the_whole_box_go_back_too(task, opened):
    for kind, paths in (("files", '"/data/notes", "/data/kv.db"'), ("sandbox", "")):
        folder = task()
        path = folder / "environment" / "environment.toml"
        path.write_text(path.read_text() + f'[environment.state]\nkind = "{kind}"\npaths = [{paths}]\n')
        one = await opened(folder)
        write = "mkdir -p /data/notes/deep; echo {0} > /data/notes/deep/x; ln -sf deep/x /data/notes/l; cat /data/notes/deep/x"
        await one.feature("world").world.box.exec(("sh", "-c", write.format("one")))
        kept = await one.feature("world").world.snapshot()
        await one.feature("world").world.box.exec(
            ("sh", "-c", write.format("two") + "; rm /data/notes/l; touch /data/notes/new")
        )
        await one.feature("world").world.restore(kept)
        done = await one.feature("world").world.box.exec(("sh", "-c", "cat /data/notes/l; ls /data/notes"))
        assert done.stdout.split() == [b"one", b"deep", b"l"], kind
        assert (await ask(one, "/all")) == {}
        await one.feature("world").world.reset()
        assert (await one.feature("world").world.box.exec(("ls", "/data/notes"))).exit_code != 0, kind


async def test_a_snapshot_of_several_services_is_of_one_moment(task, opened):
    """A writer counts up in one service and then in the other: at no moment is the second ahead, or behind by two."""
    folder = task(environment__environment_toml_="")
    (folder / "environment" / "environment.toml").write_text(TWO.format(more="", ready=""))
    one = await opened(folder)
    writer = (
        "import urllib.request as u\n"
        "for n in range(1, 10**6):\n"
        "    u.urlopen(f'http://localhost:9700/set?n={n}'); u.urlopen(f'http://localhost:9702/set?n={n}')\n"
    )
    process = await one.sandbox.spawn(("python3", "-c", writer))
    seen = []
    for _ in range(5):
        await asyncio.sleep(0.2)
        kept = await one.feature("world").world.snapshot()
        numbers = []
        for row in kept.data["files"]:
            code = "import sqlite3,sys; print(sqlite3.connect(sys.argv[1]).execute('select value from pairs').fetchone()[0])"
            done = await one.feature("world").world.box.exec(("python3", "-c", code, f"{kept.data['folder']}/{row[1]}"))
            numbers.append(int(done.stdout or 0))
        seen.append(numbers)
    await process.kill()
    assert all(a - b in (0, 1) for a, b in seen), seen
    assert seen[-1][0] > seen[0][0], "the writer went on"


async def test_a_branch_has_a_reward_for_each_child_and_their_mean(task, opened, tmp_path):
    one = await opened(task(), "scripted", agent_options={"script": "- run: 'true'"})
    await ask(one, "/set?before=1")
    await one.sandbox.exec(("sh", "-c", "echo kept > /app/file"))
    await one.execute(["begin"])
    (session,) = one.session_ids().values()

    async def child(rollout, number):
        assert (await ask(rollout, "/all")) == {"before": "1"}
        assert (await rollout.sandbox.exec(("cat", "/app/file"))).stdout == b"kept\n"
        await rollout.execute(["go on"])
        await ask(rollout, f"/set?answer={42 if number % 2 == 0 else 41}")

    found = await one.branch(4, child, concurrency=2)
    assert found.rewards == [1.0, 0.0, 1.0, 0.0] and found.value == 0.5
    assert await ask(one, "/all") == {"before": "1"}, "the parent's world is as it was"
    data = json.loads((one.dir / "branch.json").read_text())
    assert data["value"] == 0.5 and [c["rollout"] for c in data["children"]] == ["0", "1", "2", "3"]
    opened = [json.loads(line) for line in (one.dir / "branches" / "1" / "events.jsonl").read_text().splitlines()]
    assert [e["session"] for e in opened if e["kind"] == "session_opened"] == [session], (
        "the agent went on with its session"
    )
    changes = json.loads((one.dir / "branches" / "0" / "world" / "state" / "kv.diff.json").read_text())
    assert sorted(row["id"] for row in changes["added"]) == ["answer", "before"], "counted from the parent's beginning"


async def test_what_was_tampered_with_before_a_branch_is_undone_in_the_clean_reading(task, opened):
    """However many snapshots lie between the image and the box that is verified."""
    tests = "#!/bin/sh\n[ $(cat /app/answer) = 42 ]\necho $((! $?)) >/logs/verifier/reward.txt\n"
    one = await opened(task(tests=tests, manifest=None))
    fake = "rm /usr/bin/cat; printf '#!/bin/sh\\necho 42\\n' >/usr/bin/cat; chmod 755 /usr/bin/cat"
    fake += "; printf 41 >/app/answer; cat /app/answer"
    assert (await one.sandbox.exec(("sh", "-c", fake))).stdout == b"42\n"
    below = []

    async def child(rollout, number):
        await rollout.sandbox.exec(("sh", "-c", "rm /usr/bin/cmp; echo 1 >/usr/bin/cmp"))
        if number:
            below.append(await rollout.branch(1, grandchild))

    async def grandchild(rollout, number):
        await rollout.sandbox.exec(("rm", "/usr/bin/diff"))

    found = await one.branch(2, child)
    assert found.rewards == [0.0, 0.0] and below[0].rewards == [0.0]
    for result, paths in ((found.children[0], {"cat", "cmp"}), (below[0].children[0], {"cat", "cmp", "diff"})):
        assert result.verification["contested"] and result.verification["scored"] == "clean"
        assert result.verification["readings"]["clean"]["undone"]["program"] >= len(paths)
        assert "/usr/bin/cat" in {culprit["path"] for culprit in result.verification["culprits"]}
        assert "branch-origin" not in {row["code"] for row in result.findings}


async def test_what_cannot_be_branched_is_refused(task, opened):
    one = await opened(task())
    with pytest.raises(ConfigurationError, match="at least one"):
        await one.branch(0)
    shared = await opened(task(manifest='isolation = "persistent"'))
    with pytest.raises(CapabilityMissing, match="one for all rollouts"):
        await shared.branch(2)


async def test_a_rollout_without_a_world_says_so(task, opened):
    one = await opened(task(manifest=None))
    with pytest.raises(ConfigurationError, match="takes no part"):
        await one.feature("world").world.snapshot()
