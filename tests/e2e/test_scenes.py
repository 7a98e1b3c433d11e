"""Several roles in one box: messages, limits, the solution, turns side by side. Every agent is a real ACP process."""

from __future__ import annotations

import json

import pytest

from benchflow_core.contracts.scenes import Role, Scene, Turn
from benchflow_core.errors import ConfigurationError
from benchflow_core.plugins import registry
from benchflow_core.rollout import Rollout, RolloutConfig

ON_BOTH = ["local", pytest.param("docker", marks=[pytest.mark.docker, pytest.mark.xdist_group("docker")])]
GREET = 'echo "Hello, $(cat /app/name.txt)!" > /app/hello.txt'


def script(*turns: str) -> str:
    """One shell command per turn."""
    return json.dumps({"turns": [[{"run": command}] for command in turns]})


def message(to: str, content: object, file: str = "/app/.outbox/{}.json") -> str:
    text = json.dumps({"to": to, "from": "the user", "content": content})
    return f"echo '{text}' > {file.format(to)}"


@pytest.fixture(autouse=True)
def clean(tmp_path, cache, monkeypatch):
    monkeypatch.setenv("BENCHFLOW_CACHE", str(cache))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def play(examples, name, tmp_path):
    async def run(roles, turns, *, limits=None, sandbox="local", settings=None, **scene):
        available = registry().get("sandbox", name(sandbox)).spec.available()
        if not available.ok:
            pytest.skip(f"no {sandbox} sandbox here: {available.reason}")
        limits = limits or {}
        who = [Role(r, name("scripted"), options={"script": text}, **limits.get(r, {})) for r, text in roles.items()]
        config = RolloutConfig(
            examples / "hello-file",
            jobs_dir=tmp_path / "jobs",
            sandbox=name(sandbox),
            scenes=[Scene("together", who, turns, **scene)],
            **(settings or {}),
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
        (message("reviewer", "x"), "it is for 'reviewer'"),
        (message("coder", 3), "expected"),
        ("head -c 3000000 /dev/zero > /app/.outbox/coder.json", ""),
        ("ln -s /etc/passwd /app/.outbox/coder.json", "no regular file"),
        ("cd /app && cp name.txt x && ln x .outbox/.coder.json", "also somewhere else"),
        ("mkfifo /app/.outbox/coder.json", "no regular file"),
        ("mkdir -p /app/.outbox/coder.json/x", "no regular file"),
        ("""python3 -c "print('[' * 200000)" > /app/.outbox/coder.json""", "recursion"),
        ("rm -rf /app/.outbox; ln -s /etc /app/.outbox", ""),
        ("rm -rf /app/.outbox; echo x > /app/.outbox", "no folder any more"),
        ("rm -rf /app/.outbox", "/app/.outbox"),
    ],
)
async def test_what_is_no_message_is_refused_and_harms_nothing(play, written, why):
    last = f"{GREET}; ls -ld /app/.outbox"
    result, events = await play({"coder": script("true", last), "reviewer": script(written)}, REVIEW)
    assert result.rewards == {"reward": 1.0}, result.error
    assert prompts(events, "coder")[-1] == "Fix the issues.", "nothing was delivered"
    refused = [e["data"]["reason"] for e in events if e["kind"] == "outbox_refused"]
    assert why in refused[0]
    assert "drwxrwxrwx" in output(events, "coder"), "the folder is there for those that come after"


async def test_one_prompt_quotes_only_so_much(play):
    """However many messages there are: a role must not drown another."""
    flood = (
        "import json; json.dump([{'to': 'coder', 'content': 'x' * 10000}] * 90, open('/app/.outbox/coder.json', 'w'))"
    )
    result, events = await play({"coder": script("true", GREET), "reviewer": script(f'python3 -c "{flood}"')}, REVIEW)
    assert result.rewards == {"reward": 1.0}, result.error
    assert 100_000 < len(prompts(events, "coder")[-1]) < 140_000
    reasons = [e["data"]["reason"] for e in events if e["kind"] == "outbox_refused"]
    assert reasons[0] == "it holds more than 64 messages" and len(reasons) < 64
    assert reasons[1] == "more than 131072 characters would wait for 'coder'"


async def test_the_outbox_is_gone_after_the_scene(play):
    roles = {"coder": script("true", GREET), "reviewer": script(message("coder", "x"))}
    seen = script("ls -a /app")
    result, events = await play({**roles, "looker": seen}, [*REVIEW, Turn("looker", "Look.")])
    assert ".outbox" in output(events, "looker"), "it is there during the scene"
    assert result.rewards == {"reward": 1.0}
    assert not [f for f in result.findings if ".outbox" in f["path"]]


@pytest.mark.parametrize("sandbox", ON_BOTH)
async def test_a_read_only_role_is_prevented_not_asked(play, sandbox):
    places = "/app/hello.txt /app/new /usr/local/bin/tool /etc/new"
    spoil = f"for f in {places}; do echo spoilt > $f; done; cp /app/name.txt /tmp/note && " + message("coder", "seen")
    roles = {"coder": script(GREET, f"grep -sl spoilt {places}; echo looked"), "reviewer": script(spoil)}
    result, events = await play(roles, REVIEW, limits={"reviewer": {"read_only": True}}, sandbox=sandbox)
    assert result.rewards == {"reward": 1.0}, "the reviewer wrote over the coder's work"
    assert '"content": "seen"' in prompts(events, "coder")[-1], "its message could be written"
    found = output(events, "coder")
    assert "looked" in found and not [place for place in places.split() if place in found], found


@pytest.mark.parametrize("sandbox", ON_BOTH)
async def test_only_the_role_that_is_told_of_the_solution_can_read_it(play, sandbox):
    look = "cat /solution/solve.sh || echo nothing to see"
    turns = [Turn("user", "The solution is in /solution/solve.sh. Give a hint."), Turn("helper")]
    result, events = await play({"user": script(look), "helper": script(look)}, turns, sandbox=sandbox)
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


async def test_a_folder_of_ones_own_is_not_made_somewhere_else(play):
    roles = {"one": script("rm -rf /app/.outbox; ln -s /srv /app/.outbox", "ls -A /srv; ls -ld /app/.outbox")}
    roles["two"] = script(GREET)
    result, events = await play(roles, [Turn("one"), Turn("one", "Again."), Turn("two")], concurrent=True)
    assert result.rewards == {"reward": 1.0}, result.error
    assert "from-one" not in output(events, "one") and "drwx" in output(events, "one")


@pytest.mark.parametrize(
    ("breaks", "limits", "code"),
    [("kill -9 $PPID", {}, "agent_crashed"), ("sleep 600", {"one": {"timeout_sec": 0.5}}, "agent_timeout")],
)
async def test_a_role_that_fails_beside_others_takes_nothing_from_them(play, breaks, limits, code):
    """It is the agent's failure, and what the others made is verified."""
    roles = {"one": script(breaks), "two": script(f"sleep 2; {GREET}")}
    result, _ = await play(roles, [Turn("one"), Turn("two", "Help.")], concurrent=True, limits=limits)
    assert result.rewards == {"reward": 1.0}, result.error
    assert (result.error_info["kind"], result.error_info["code"]) == ("agent", code)


async def test_an_unknown_role_is_refused_before_anything_starts(play):
    with pytest.raises(ConfigurationError, match="role 'reviewer', which the scene does not have"):
        await play({"coder": script("true")}, [Turn("coder"), Turn("reviewer", "x")])


@pytest.mark.parametrize(
    ("roles", "why"),
    [
        ([Role("coder", "x"), Role("coder", "x")], "names a role twice: coder, coder"),
        ([Role("../coder", "x")], "folders and files are called by it"),
        ([Role("coder", "x", timeout_sec=-3)], "role 'coder' of scene 's' has no time"),
        ([Role("", "x")], "folders and files are called by it"),
        ([Role("a\nb", "x")], "folders and files are called by it"),
        ([], "has no roles"),
    ],
)
async def test_a_list_of_roles_that_cannot_be_meant_is_refused(examples, tmp_path, roles, why):
    config = RolloutConfig(examples / "hello-file", jobs_dir=tmp_path / "jobs", scenes=[Scene("s", roles, [])])
    with pytest.raises(ConfigurationError, match=why):
        await Rollout.create(config)
    assert not (tmp_path / "jobs").exists()


async def test_each_role_has_its_own_model_effort_variables_time_and_skills(play, tmp_path):
    for name in ("coding", "reviewing"):
        (tmp_path / name / name).mkdir(parents=True)
        (tmp_path / name / name / "SKILL.md").write_text(f"---\nname: {name}\n---\n{name} it\n")
    (tmp_path / "both/shared").mkdir(parents=True)
    (tmp_path / "both/shared/SKILL.md").write_text("shared")
    look = "echo {{model}}, {{effort}}, $WHO, $(ls ~/.agents/skills | tr '\\n' ' ')"
    peek = f"{look}; ls -d /root/.benchflow-coder/.agents/skills/coding 2>&1"
    limits = {
        "coder": {
            "model": "small",
            "reasoning_effort": "low",
            "env": {"WHO": "me"},
            "timeout_sec": 60,
            "skills_dir": str(tmp_path / "coding"),
        },
        "reviewer": {"model": "large", "env": {"WHO": "you"}, "skills_dir": str(tmp_path / "reviewing")},
    }
    roles = {"coder": script(look, GREET), "reviewer": script(peek)}
    result, events = await play(roles, REVIEW, limits=limits, skills_dir=str(tmp_path / "both"))
    assert result.rewards == {"reward": 1.0}, result.error
    assert "small, low, me, coding shared" in output(events, "coder")
    assert "large, " in output(events, "reviewer") and "you, reviewing shared" in output(events, "reviewer")
    assert "No such file" in output(events, "reviewer"), "another role's skills are hidden"
    told = {e["role"]: e["data"]["names"] for e in events if e["kind"] == "skills"}
    assert told == {"coder": ["shared", "coding"], "reviewer": ["shared", "reviewing"]}
    assert "coding it" not in json.dumps([prompts(events, role) for role in roles])


async def test_a_roles_time_is_its_own(play):
    limits = {"coder": {"timeout_sec": 0.5}}
    result, _events = await play({"coder": script("sleep 30"), "reviewer": script("true")}, REVIEW, limits=limits)
    assert "turn 1 of 'coder' took longer than 0.5 s" in result.error and result.error_info["code"] == "agent_timeout"


async def test_skills_of_a_role_that_are_none_are_refused(play, tmp_path):
    with pytest.raises(ConfigurationError, match="no skill in"):
        await play({"coder": script("true")}, [Turn("coder")], limits={"coder": {"skills_dir": str(tmp_path)}})


async def test_a_prompt_that_names_the_instruction_finds_it_and_the_verifier_does_not(play):
    turns = [Turn("coder", "Read /app/instruction.md."), Turn("coder", "Go.")]
    result, events = await play({"coder": script("cat /app/instruction.md", GREET)}, turns)
    assert "name.txt" in output(events, "coder") and result.rewards == {"reward": 1.0}
    assert not [f for f in result.findings if "instruction.md" in f["path"]]


async def test_a_message_can_end_a_scene_early(play):
    roles = {"coder": script(GREET, "rm /app/hello.txt"), "reviewer": script(message("coder", "LGTM, thank you"))}
    result, events = await play(roles, REVIEW, stop_when="LGTM")
    assert result.rewards == {"reward": 1.0}, "the last turn was not played"
    [stopped] = [e["data"] for e in events if e["kind"] == "scene_stopped"]
    assert stopped == {"scene": "together", "by": "reviewer", "turns_left": 1}


async def test_a_scene_that_nobody_could_end_is_refused(play):
    with pytest.raises(ConfigurationError, match="stop_when, which needs a text and roles that take turns"):
        await play({"coder": script("true")}, [Turn("coder")], stop_when="LGTM")


@pytest.mark.parametrize("sandbox", ON_BOTH)
async def test_locked_paths_are_shut_for_agents_and_open_for_the_verifier(play, sandbox):
    """`sandbox_locked_paths` of the older configs."""
    look = "cat /app/name.txt; ls /app; echo looked"
    roles = {"solver": script(look + "; echo 'Hello, Ada!' > /app/hello.txt")}
    locked = {"sandbox_locked_paths": ["/app/name.txt"]}
    result, events = await play(roles, [Turn("solver")], sandbox=sandbox, settings=locked)
    assert result.rewards == {"reward": 1.0}, result.error
    said = output(events, "solver")
    assert "looked" in said and "Ada" not in said.replace("Hello, Ada", "")


@pytest.mark.parametrize("path", ["secret", "/", "/app/../etc"])
async def test_a_locked_path_is_an_absolute_one(play, path):
    with pytest.raises(ConfigurationError, match="no absolute path below the box's root"):
        await play({"solver": script("true")}, [Turn("solver")], settings={"sandbox_locked_paths": [path]})
