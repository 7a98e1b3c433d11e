"""Whole rollouts in a world: who reaches what, who is told what, what a failure is called."""

from __future__ import annotations

import json

import pytest

from benchflow_core.plugins import registry

from .conftest import GET


async def test_the_agent_acts_and_the_verifier_reads_the_state(task, run, tmp_path):
    tests = """#!/bin/sh
set -e
test "$BENCHFLOW_WORLD" = /logs/world
python3 - <<'PY'
import json, sqlite3, urllib.request
now = dict(sqlite3.connect("/data/kv.db").execute("select name, value from pairs"))
before = dict(sqlite3.connect("/logs/world/kv.seed.db").execute("select name, value from pairs"))
changed = json.load(open("/logs/world/kv.diff.json"))
served = json.load(urllib.request.urlopen("http://localhost:9700/all"))
world = json.load(open("/logs/world/world.json"))
assert (before, now, served) == ({}, {"answer": "42"}, {"answer": "42"}), (before, now, served)
assert [row["after"] for row in changed["added"]] == [{"name": "answer", "value": "42"}], changed
assert not changed["removed"] and not changed["changed"] and world["name"] == "kv"
open("/logs/verifier/reward.txt", "w").write("1")
PY
"""
    result = await run(task(f"{GET} 'http://localhost:9700/set?answer=42'", tests))
    assert result.rewards == {"reward": 1.0}, (result.error, result.verifier_error_info)
    assert result.isolation == "fresh"
    folder = result.rollout_dir
    for name in ("result.json", "config.json"):
        data = json.loads((folder / name).read_text())
        assert data["env_hash"].startswith("sha256:") and data["world"]["services"] == ["kv"], name
    lock = json.loads((folder / "lock.json").read_text())["world"]
    assert lock["env_hash"] == data["env_hash"] and lock["environment"]["services"][0]["port"] == 9700
    assert lock["pinned_by"] == "task" and lock["placement"] == "own-box"


async def test_an_agent_that_does_nothing_gets_nothing(task, run):
    assert (await run(task(), "nop")).rewards == {"reward": 0.0}


REACH = f"""
ls -la /data > /app/seen 2>&1
find / -xdev -name 'kv.db*' 2>/dev/null >> /app/seen
cat /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n' | grep -i token >> /app/seen
env | grep -i -e token -e KV_ >> /app/seen
ps aux 2>/dev/null | grep [k]vd >> /app/seen
{GET} http://localhost:9700/_admin/state >> /app/seen 2>&1
true
"""
SEEN = """#!/bin/sh
cat /app/seen
if grep -v -e 'cannot access' -e 'No such file' -e Error -e Traceback -e 'File ' -e '^ ' -e raise /app/seen | grep -q .; then echo 0; else echo 1; fi > /logs/verifier/reward.txt
"""


async def test_nothing_of_a_service_is_in_the_agents_reach_but_its_port(task, run):
    result = await run(task(REACH, SEEN))
    assert result.rewards == {"reward": 1.0}, (result.rollout_dir / "verifier" / "test-stdout.txt").read_text()


SQUAT = """
mkdir -p /data && python3 - <<'PY'
import sqlite3
for name in ("/data/kv.db", "/tmp/other.db"):
    c = sqlite3.connect(name); c.execute("pragma journal_mode=wal"); c.execute("pragma wal_autocheckpoint=0")
    c.execute("create table if not exists pairs (name text primary key, value text)")
    c.execute("insert or replace into pairs values ('answer', '42')"); c.commit()
    import shutil
    shutil.copy(name + "-wal", "/data/kv.db-wal")
PY
(setsid kvd --db /data/kv.db --port 9700 >/dev/null 2>&1 &)
(setsid kvd --db /data/kv.db --port 9701 >/dev/null 2>&1 &)
sleep 0.5
"""
ASKS = """#!/bin/sh
python3 - <<'PY'
import json, sqlite3, urllib.request
rows = dict(sqlite3.connect("/data/kv.db").execute("select name, value from pairs"))
rows |= json.load(urllib.request.urlopen("http://localhost:9700/all"))
print(rows)
open("/logs/verifier/reward.txt", "w").write(str(float(rows.get("answer") == "42")))
PY
"""


@pytest.mark.parametrize("link", ["", "rm -rf /data; ln -s /proc /data", "rm -rf /logs; ln -s /proc /logs"])
async def test_a_squatted_port_and_a_planted_database_do_not_count(task, run, link):
    result = await run(task(f"{SQUAT}\n{link}", ASKS))
    assert result.rewards == {"reward": 0.0}, (result.error_info, result.verifier_error_info)


async def test_a_service_that_dies_is_infrastructure_with_its_log(task, run):
    result = await run(task(f"{GET} http://localhost:9700/crash; sleep 30"))
    assert result.rewards is None and result.error_info["kind"] == "infrastructure"
    assert "service 'kv' ended with exit code 3" in result.error and "told to crash" in result.error
    assert "told to crash" in result.error_info["details"]["log"] and result.error_info["retryable"]
    assert result.timing["agent_execution"] < 20
    assert "told to crash" in (result.rollout_dir / "world" / "logs" / "kv.log").read_text()


async def boxes_of(rollout: str) -> list[str]:
    """Other tests have boxes of their own meanwhile."""
    spec = registry().get("sandbox", "local").spec
    return [lease.id async for lease in spec.list_leases() if rollout in str(lease.labels)]


@pytest.mark.parametrize("ready", ["tcp = [9999]", 'command = ["exit 4"]', 'http = ["http://localhost:9700/none"]'])
async def test_every_kind_of_readiness_is_waited_for(task, run, ready, tmp_path):
    folder = task("touch /app/started", ready=ready)
    path = folder / "environment" / "environment.toml"
    path.write_text(path.read_text().replace("timeout_sec = 20", "timeout_sec = 1"))
    result = await run(folder)
    assert result.rewards is None and result.error_info["kind"] == "infrastructure"
    assert "was not ready within 1 s" in result.error and "kvd listens" in result.error_info["details"]["log"]
    assert "execute" not in (result.rollout_dir / "events.jsonl").read_text()
    assert await boxes_of(result.rollout_name) == []


async def test_only_installed_services_are_started(task, run):
    extra = '\n[[environment.services]]\nname = "ghost"\ncommand = "no-such-claw --port 9800"\nport = 9800\n'
    folder = task(f"{GET} 'http://localhost:9700/set?answer=42'")
    path = folder / "environment" / "environment.toml"
    path.write_text(path.read_text() + extra)
    result = await run(folder)
    assert result.rewards == {"reward": 1.0}
    assert any("ghost" in notice and "not installed" in notice for notice in result.notices)
    path.write_text(path.read_text().replace("kvd --db", "also-not-there --db"))
    result = await run(folder)
    assert "none of the world's services is installed" in result.error and not result.error_info["retryable"]


async def test_the_tasks_database_is_the_seed_and_not_shown_to_the_agent(task, run):
    import sqlite3

    folder = task(
        f"test ! -e /data/kv.db && {GET} http://localhost:9700/all | grep -q seeded && "
        f"{GET} 'http://localhost:9700/set?answer=42'",
        environment__Dockerfile="FROM python:3.12-slim\nCOPY kvd /usr/local/bin/kvd\nCOPY kv.db /data/kv.db\n"
        "RUN chmod 755 /usr/local/bin/kvd\nWORKDIR /app\n",
    )
    with sqlite3.connect(folder / "environment" / "kv.db") as connection:
        connection.execute("create table pairs (name text primary key, value text)")
        connection.execute("insert into pairs values ('seeded', 'yes')")
    result = await run(folder)
    assert result.rewards == {"reward": 1.0}, (result.rollout_dir / "agent" / "oracle.txt").read_text()


SHOWS = "sh -c 'umask 022; env > /data/env; exec python3 -m http.server 9700 -d /data'"


@pytest.mark.parametrize(("where", "allow"), [("entrypoint", []), ("exec", ["KV_SECRET"])])
async def test_the_world_knows_its_task_and_only_allowed_variables(task, run, host, where, allow):
    host.env["KV_SECRET"] = "s3cret-of-the-host"
    record = f"{GET} http://localhost:9700/env > /app/worlds; env > /app/agents"
    folder = task(record, "#!/bin/sh\ncat /app/worlds; echo ===; cat /app/agents\necho 1 > /logs/verifier/reward.txt\n")
    path = folder / "environment" / "environment.toml"
    text = path.read_text().replace('mechanism = "image"', f'key = "KV_TASK"\ninject_into = "{where}"')
    text = text.replace("kvd --db /data/kv.db --port 9700", SHOWS).replace(
        "port = 9700", 'port = 9700\nhealth_path = "/"'
    )
    path.write_text(text + '[environment.forward_env]\nkeys = ["KV_SECRET"]\n')
    result = await run(folder, allow_env=allow)
    assert result.rewards == {"reward": 1.0}, result.error
    worlds, agents = (result.rollout_dir / "verifier" / "test-stdout.txt").read_text().split("===")
    assert ("KV_TASK=t0" in worlds, "KV_TASK=t0" in agents) == (where == "entrypoint", where == "exec")
    assert ("KV_SECRET=" in worlds) == bool(allow) and "KV_SECRET" not in agents and "s3cret" not in worlds
    assert any("KV_SECRET is not given" in notice for notice in result.notices) == (not allow)
    assert "CLAW_ADMIN_TOKEN=" in worlds and "CLAW_ADMIN_TOKEN" not in agents


async def test_the_end_of_the_images_process_matters_without_keep_alive(task, run):
    """A service of one shot: with `keep_alive` the world goes on, but a service of the framework's never may end."""
    folder = task("sleep 3", "#!/bin/sh\necho 1 > /logs/verifier/reward.txt\n")
    path = folder / "environment" / "environment.toml"
    path.write_text(path.read_text().replace("kvd --db", "timeout 1 kvd --db"))
    result = await run(folder)
    assert result.error_info["kind"] == "infrastructure" and "exit code 124" in result.error


async def test_a_persistent_world_is_one_for_all_rollouts(task, run):
    add = f"{GET} http://localhost:9700/all > /app/before; {GET} 'http://localhost:9700/set?from_{{}}=1'"
    tests = "#!/bin/sh\ncat /app/before\necho 1 > /logs/verifier/reward.txt\n"
    first = task(add.format("a"), tests, manifest='isolation = "persistent"')
    second = task(add.format("b"), tests, manifest='isolation = "persistent"')
    for folder, seen in ((first, "{}"), (second, '{"from_a": "1"}')):
        result = await run(folder)
        assert result.rewards == {"reward": 1.0}, result.error
        assert (result.rollout_dir / "verifier" / "test-stdout.txt").read_text().strip() == seen
    assert result.world["isolation"] == "persistent"


async def test_a_persistent_world_is_not_told_one_task_of_many(task, run):
    """It would be the first one's name for all of them."""
    tests = "#!/bin/sh\ncat /app/worlds\necho 1 > /logs/verifier/reward.txt\n"
    folder = task(f"{GET} http://localhost:9700/env > /app/worlds", tests, manifest='isolation = "persistent"')
    path = folder / "environment" / "environment.toml"
    text = path.read_text().replace('mechanism = "image"', 'key = "KV_TASK"')
    shows = text.replace("kvd --db /data/kv.db --port 9700", SHOWS)
    path.write_text(shows.replace("port = 9700", 'port = 9700\nhealth_path = "/"'))
    result = await run(folder)
    assert result.rewards == {"reward": 1.0}, result.error
    assert "KV_TASK" not in (result.rollout_dir / "verifier" / "test-stdout.txt").read_text()
    assert any("KV_TASK is not set there" in line for line in result.notices)
