"""Several roles in one box: messages, limits, the solution, turns side by side. Every agent is a real ACP process."""

from __future__ import annotations

import json

import pytest

from benchflow_core.drive.scenes import Role, Scene, Turn
from benchflow_core.errors import ConfigurationError
from benchflow_core.rollout import Rollout, RolloutConfig

GREET = 'echo "Hello, $(cat /app/name.txt)!" > /app/hello.txt'


def script(*turns: str) -> str:
    """One shell command per turn."""
    return json.dumps({"turns": [[{"run": command}] for command in turns]})


def message(to: str, content: object, file: str = "/app/.outbox/{}.json") -> str:
    text = json.dumps({"to": to, "from": "the user", "content": content})
    return f"echo '{text}' > {file.format(to)}"


@pytest.fixture(autouse=True)
def clean(tmp_path, monkeypatch):
    monkeypatch.setenv("BENCHFLOW_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def play(examples, name, tmp_path):
    async def run(roles, turns, *, limits=None, **scene):
        limits = limits or {}
        who = [Role(r, name("scripted"), options={"script": text}, **limits.get(r, {})) for r, text in roles.items()]
        config = RolloutConfig(
            examples / "hello-file",
            jobs_dir=tmp_path / "jobs",
            sandbox=name("local"),
            scenes=[Scene("together", who, turns, **scene)],
        )
        rollout = await Rollout.create(config)
        result = await rollout.run()
        return result, [json.loads(line) for line in rollout.record.dir.events.read_text().splitlines()]

    return run


def prompts(events, role):
    return [e["data"]["prompt"] for e in events if e["kind"] == "turn_started" and e["role"] == role]


def output(events, role):
    """What the commands of a role printed."""
    return json.dumps([e["data"].get("rawOutput") or e["data"].get("content") for e in events if e.get("role") == role])


REVIEW = [Turn("coder"), Turn("reviewer", "Review it."), Turn("coder", "Fix the issues.")]


async def test_a_message_reaches_the_next_turn_of_its_addressee(play):
    roles = {"coder": script("true", GREET), "reviewer": script(message("coder", "Read name.txt."))}
    result, events = await play(roles, REVIEW)
    assert result.rewards == {"reward": 1.0}, result.error
    first, last = prompts(events, "coder")
    assert last.startswith("Fix the issues.") and "Read name.txt." not in first
    assert '{"from": "reviewer", "content": "Read name.txt."}' in last, "the sender is what we saw"
    assert result.roles.keys() == {"coder", "reviewer"}


@pytest.mark.parametrize(
    ("written", "why"),
    [
        ("echo 'not json' > /app/.outbox/coder.json", "Expecting value"),
        (message("nobody", "x"), "it is for 'nobody'"),
        (message("coder", 3), "expected"),
        ("head -c 3000000 /dev/zero > /app/.outbox/coder.json", ""),
        ("ln -s /etc/passwd /app/.outbox/coder.json", None),
        ("rm -rf /app/.outbox; ln -s /etc /app/.outbox", ""),
    ],
)
async def test_what_is_no_message_is_refused_and_harms_nothing(play, written, why):
    result, events = await play({"coder": script("true", GREET), "reviewer": script(written)}, REVIEW)
    assert result.rewards == {"reward": 1.0}, result.error
    assert prompts(events, "coder")[-1] == "Fix the issues.", "nothing was delivered"
    refused = [e["data"]["reason"] for e in events if e["kind"] == "outbox_refused"]
    assert (not refused) if why is None else why in refused[0]


async def test_the_outbox_is_gone_after_the_scene(play):
    roles = {"coder": script("true", GREET), "reviewer": script(message("coder", "x"))}
    seen = script("ls -a /app")
    result, events = await play({**roles, "looker": seen}, [*REVIEW, Turn("looker", "Look.")])
    assert ".outbox" in output(events, "looker"), "it is there during the scene"
    assert result.rewards == {"reward": 1.0}
    assert not [f for f in result.findings if ".outbox" in f["path"]]


async def test_a_read_only_role_is_prevented_not_asked(play):
    places = "/app/hello.txt /app/new /usr/local/bin/tool /etc/new"
    spoil = f"for f in {places}; do echo spoilt > $f; done; cp /app/name.txt /tmp/note && " + message("coder", "seen")
    roles = {"coder": script(GREET, f"grep -sl spoilt {places}; echo looked"), "reviewer": script(spoil)}
    result, events = await play(roles, REVIEW, limits={"reviewer": {"read_only": True}})
    assert result.rewards == {"reward": 1.0}, "the reviewer wrote over the coder's work"
    assert '"content": "seen"' in prompts(events, "coder")[-1], "its message could be written"
    found = output(events, "coder")
    assert "looked" in found and not [place for place in places.split() if place in found], found


async def test_only_the_role_that_is_told_of_the_solution_can_read_it(play):
    look = "cat /solution/solve.sh || echo nothing to see"
    turns = [Turn("user", "The solution is in /solution/solve.sh. Give a hint."), Turn("helper")]
    result, events = await play({"user": script(look), "helper": script(look)}, turns)
    assert "role 'user' may read the reference solution in /solution" in result.notices
    assert "Hello" in output(events, "user") and "nothing to see" not in output(events, "user")
    assert "nothing to see" in output(events, "helper") and "Hello" not in output(events, "helper")


async def test_roles_of_a_concurrent_scene_do_not_wait_for_each_other(play):
    """Each waits for a file that only the other writes: one after the other they would never end."""
    wait = (
        "touch /app/{me}; for i in $(seq 1200); do [ -e /app/{other} ] && break; sleep 0.1; done; [ -e /app/{other} ]"
    )
    hello = message("two", "hi", "/app/.outbox/from-one/{}.json")
    roles = {
        "one": script(wait.format(me="one", other="two") + f" && {GREET}; {hello}"),
        "two": script(wait.format(me="two", other="one")),
    }
    result, events = await play(roles, [Turn("one"), Turn("two", "Help.")], concurrent=True)
    assert result.rewards == {"reward": 1.0}, result.error
    assert "/app/.outbox/from-one/<role>.json" in prompts(events, "one")[0]
    order = [e["kind"] for e in events if e["kind"] in ("turn_started", "turn_finished")]
    assert order[:2] == ["turn_started"] * 2, "both had begun before one had ended"
    sent = [e["data"] for e in events if e["kind"] == "outbox_message"]
    assert sent == [{"from": "one", "to": "two", "content": "hi"}]


async def test_an_unknown_role_is_refused_before_anything_starts(play):
    with pytest.raises(ConfigurationError, match="role 'reviewer', which the scene does not have"):
        await play({"coder": script("true")}, [Turn("coder"), Turn("reviewer", "x")])
