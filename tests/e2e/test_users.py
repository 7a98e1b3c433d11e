"""Simulated users: Python decides what a real ACP agent is told next, from what the tests say."""

from __future__ import annotations

import asyncio
import json
import shutil
import time

import pytest
from benchflow_driver_scenes.model_user import ModelUser
from benchflow_driver_scenes.users import FunctionUser, PassthroughUser

from benchflow_core.contracts import BaseUser
from benchflow_core.contracts.scenes import Scene
from benchflow_core.errors import CapabilityMissing, ConfigurationError
from benchflow_core.rollout import Rollout, RolloutConfig

GREET = 'echo "Hello, $(cat /app/name.txt)!" > /app/hello.txt'


@pytest.fixture(autouse=True)
def clean(tmp_path, cache, monkeypatch):
    monkeypatch.setenv("BENCHFLOW_CACHE", str(cache))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def play(examples, name, tmp_path):
    async def run(user, *turns, **more):
        script = json.dumps({"turns": [step if isinstance(step, list) else [{"run": step}] for step in turns]})
        settings = {"agent": name("scripted"), "agent_options": {"script": script}, "sandbox": name("local"), **more}
        config = RolloutConfig(examples / "hello-file", jobs_dir=tmp_path / "jobs", user=user, **settings)
        rollout = await Rollout.create(config)
        return await rollout.run(), rollout

    return run


async def test_a_user_sees_each_round_and_stops_when_it_likes(play):
    seen = []

    def user(round, instruction, result):
        seen.append(result)
        if result and result.rewards == {"reward": 1.0}:
            return None
        return instruction if round == 0 else "Read name.txt and greet."

    result, rollout = await play(FunctionUser(user), "true", GREET, "rm /app/hello.txt")
    assert result.rewards == {"reward": 1.0}, result.error
    assert seen[0] is None and [r.rewards["reward"] for r in seen[1:]] == [0.0, 1.0]
    assert (seen[1].round, seen[1].n_tool_calls) == (0, 1)
    kinds = {event["kind"] for event in seen[1].trajectory}
    assert {"turn_started", "tool_call", "turn_finished"} <= kinds, "the user can look at the turn"
    loop = rollout.result.to_json()["loop"]
    assert (loop["iterations_run"], loop["stop_reason"], loop["rewards"]) == (2, "user", [0.0, 1.0])
    sessions = {e["session"] for e in rollout.events() if e["kind"] == "turn_started"}
    assert len(sessions) == 1, "one conversation, not one per round"


async def test_rounds_are_bounded(play):
    result, _ = await play(FunctionUser(lambda *_: "Go on."), "true", max_user_rounds=2)
    assert (result.n_prompts, result.loop["stop_reason"]) == (2, "max_rounds")


async def test_passthrough_is_the_same_as_no_user(play):
    result, rollout = await play(PassthroughUser(), GREET)
    assert result.rewards == {"reward": 1.0}
    assert json.loads((rollout.dir / "prompts.json").read_text()) == [rollout.instruction()]


class Oracle(BaseUser):
    solution: str | None = None

    async def setup(self, instruction, solution=None):
        self.solution = solution

    async def run(self, round, instruction, round_result=None):
        return "Look for /solution." if round == 0 else None


async def test_the_solution_is_told_to_the_user_alone(play):
    user = Oracle()
    _, rollout = await play(user, "ls /solution || echo none", oracle_access=True)
    assert user.solution and "hello.txt" in user.solution
    assert "none" in json.dumps(rollout.events()), "it is not in the box"
    blind = Oracle()
    await play(blind, "true")
    assert blind.solution is None


class Guard(Oracle):
    async def on_permission(self, request):
        return next(o["optionId"] for o in request["options"] if o["kind"].startswith("reject"))


@pytest.mark.parametrize(("user", "outcome"), [(Guard(), "reject"), (Oracle(), "allow")])
async def test_the_agents_questions_reach_the_user_first(play, user, outcome):
    _, rollout = await play(user, [{"run": "echo bold", "permission": True}])
    asked = [e["data"] for e in rollout.events() if e["kind"] == "permission_request"]
    assert len(asked) == 1
    chosen = asked[0]["outcome"]["optionId"]
    kinds = {o["optionId"]: o["kind"] for o in asked[0]["options"]}
    assert kinds[chosen].startswith(outcome)


@pytest.mark.parametrize(
    ("answer", "why"),
    [(ValueError("boom"), "raised ValueError: boom"), (7, "neither a prompt nor None"), ("", "neither")],
)
async def test_a_user_that_fails_is_named(play, answer, why):
    def user(*_):
        if isinstance(answer, Exception):
            raise answer
        return answer

    result, _ = await play(FunctionUser(user), "true")
    assert why in result.error and result.error_info["kind"] == "configuration" and result.rewards is None


@pytest.mark.parametrize("blocking", [True, False])
async def test_a_user_that_never_returns_is_named_and_its_time_is_not_the_agents(play, blocking):
    def wait(*_):
        time.sleep(3600)

    async def wait_async(*_):
        await asyncio.sleep(3600)

    user = FunctionUser(wait if blocking else wait_async)
    result, rollout = await play(user, "true", user_timeout=1.5, timeout=0.5)
    assert result.error == "the user's run() did not answer within 1.5 s."
    assert result.error_info["kind"] == "configuration" and "user_timeout" in result.error_info["remedy"]
    assert result.rewards is None and result.flags == [f for f in result.flags if "timeout" not in f]
    assert rollout.phase == "cleaned"


@pytest.mark.parametrize("error", [SystemExit(3), StopIteration("x"), asyncio.CancelledError("x")])
@pytest.mark.parametrize("plain", [True, False])
async def test_a_user_that_wants_to_leave_is_named(play, error, plain):
    def leave(*_):
        raise error

    async def leave_async(*_):
        raise error

    result, _ = await play(FunctionUser(leave if plain else leave_async), "true")
    assert type(error).__name__ in result.error and result.error_info["kind"] == "configuration"


class Asked(Oracle):
    """Answers whatever `said` is; raises it where it is an exception."""

    def __init__(self, said):
        self.said, self.questions = said, []

    async def on_ask(self, request):
        self.questions.append(request)
        if isinstance(self.said, Exception):
            raise self.said
        return self.said


ELICIT = [
    {"elicit": {"message": "Which colour?", "properties": {"colour": {"type": "string"}}}},
    {"run": "echo {{last|sh}} > /app/answer.txt"},
    {"run": GREET},
]


@pytest.mark.parametrize(
    ("said", "answer"), [({"colour": "red"}, {"action": "accept", "content": {"colour": "red"}}), (None, "decline")]
)
async def test_an_agents_question_for_more_reaches_the_user(play, said, answer):
    user = Asked(said)
    result, rollout = await play(user, ELICIT)
    assert result.rewards == {"reward": 1.0}, result.error
    [question] = user.questions
    assert question["message"] == "Which colour?" and "colour" in question["requestedSchema"]["properties"]
    [event] = [e["data"] for e in rollout.events() if e["kind"] == "elicitation_request"]
    assert event["response"] == (answer if isinstance(answer, dict) else {"action": answer})


@pytest.mark.parametrize(
    ("said", "why"),
    [(KeyError("x"), "the user's on_ask() raised KeyError: 'x'"), ("red", "on_ask() gave 'red', neither a mapping")],
)
async def test_a_user_that_cannot_answer_a_question_is_named(play, said, why):
    result, _ = await play(Asked(said), ELICIT)
    assert why in result.error and result.error_info["kind"] == "configuration"


@pytest.mark.parametrize(
    ("user", "more", "why"),
    [
        (lambda *_: None, {}, r"no BaseUser. Wrap a function in FunctionUser"),
        (PassthroughUser(), {"max_user_rounds": 0}, r"at least one round"),
        (PassthroughUser(), {"user_timeout": 0}, r"'user_timeout' must be above 0, not 0"),
        (ModelUser(), {}, r"the simulated user needs a model"),
        (ModelUser(model="openai/x"), {}, r"no credential for provider 'openai'"),
        (PassthroughUser(), {"prompts": ["x"]}, r"decides the prompts itself"),
        (PassthroughUser(), {"driver": "self-review"}, r"decides the prompts itself"),
    ],
)
async def test_what_cannot_be_a_user_is_refused_before_anything_starts(play, tmp_path, monkeypatch, user, more, why):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(ConfigurationError, match=why):
        await play(user, "true", **more)
    assert not (tmp_path / "jobs").exists()


async def test_a_scene_may_say_whom_the_user_talks_to_and_nothing_more(play, name):
    script = {"script": json.dumps({"otherwise": [{"run": GREET}]})}
    scene = Scene.single(agent=name("scripted"), options=script)
    result, _ = await play(PassthroughUser(), "true", agent=None, scenes=[scene])
    assert result.rewards == {"reward": 1.0}, result.error
    with pytest.raises(ConfigurationError, match="'agent' would do nothing: the scenes name"):
        await play(PassthroughUser(), "true", scenes=[scene])
    for prompts in (["x"], [None, None]):
        scene = Scene.single(agent=name("scripted"), prompts=prompts)
        with pytest.raises(ConfigurationError, match="simulated user decides the prompts itself"):
            await play(PassthroughUser(), "true", agent=None, scenes=[scene])


@pytest.fixture
def talk(name, tmp_path, local_model, monkeypatch):
    """An agent whose user is a model; what the user says is scripted."""

    async def run(task, said, *turns, **more):
        monkeypatch.setenv("OPENAI_API_KEY", "sk-provider")
        monkeypatch.setenv("OPENAI_BASE_URL", f"{local_model.base_url}/v1")
        local_model.script("persona", [{"text": text} for text in said])
        settings = {"model": "openai/some-model", "agent_options": {"script": json.dumps({"turns": turns})}, **more}
        config = RolloutConfig(
            task, jobs_dir=tmp_path / "jobs", sandbox=name("local"), agent=name("scripted"), **settings
        )
        rollout = await Rollout.create(config)
        return await rollout.run(), rollout, [seen.body for seen in local_model.log]

    return run


@pytest.fixture
def task(examples, tmp_path):
    folder = shutil.copytree(examples / "hello-file", tmp_path / "task")
    (folder / "instruction.md").write_text("Greet. [[fake:persona]]")
    return folder


async def test_a_model_can_be_the_user(talk, task):
    """It speaks through the gateway: what it spends is counted, its key stays outside the box."""
    user = ModelUser("You are in a hurry.", model="openai/users-model")
    result, rollout, asked = await talk(
        task, ["Please greet Ada.", "DONE"], [{"run": GREET}, {"say": "It is done."}], user=user
    )
    assert result.rewards == {"reward": 1.0}, result.error
    assert json.loads((rollout.dir / "prompts.json").read_text()) == ["Please greet Ada."]
    assert "It is done." in str(asked[-1]), "the user hears what the agent said"
    assert {body["model"] for body in asked} == {"users-model"}
    assert "You are in a hurry." in str(asked[0]) and "asks a software agent" in str(asked[0])
    calls = (rollout.dir / "trajectory/llm_trajectory.jsonl").read_text().splitlines()
    assert len(calls) == 2 and all('"user"' in line for line in calls)
    assert result.usage_details["gateway"]["user"]["output_tokens"] > 0


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        ('```json\n{"colour": "red"}\n```', {"action": "accept", "content": {"colour": "red"}}),
        ("DECLINE", {"action": "decline"}),
        ("[1]", {"action": "decline"}),
    ],
)
async def test_a_model_answers_the_agents_questions(talk, task, said, answer):
    result, rollout, asked = await talk(task, ["Go.", said, "DONE"], ELICIT, user=ModelUser())
    assert result.rewards == {"reward": 1.0}, result.error
    [event] = [e["data"] for e in rollout.events() if e["kind"] == "elicitation_request"]
    assert event["response"] == answer
    assert "Which colour?" in str(asked[1]) and "Which colour?" in str(asked[2]), "it remembers what it was asked"


def with_user(examples, tmp_path, user, more=""):
    """A task that describes its own user."""
    folder = shutil.copytree(examples / "hello-doc", tmp_path / "doc")
    text = (folder / "task.md").read_text().replace("---\n", f"---\nuser: {user}\n{more}", 1)
    (folder / "task.md").write_text(f"{text}\n[[fake:persona]]\n")
    (folder / "prompts").mkdir()
    (folder / "prompts/user-persona.md").write_text("You are grumpy.")
    return folder


async def test_a_task_may_bring_its_user(talk, examples, tmp_path):
    task = with_user(examples, tmp_path, "{model: openai/tasks-model}")
    result, rollout, asked = await talk(task, ["Do it.", "DONE"], [{"say": "Done."}], model=None)
    assert result.error is None and result.loop["stop_reason"] == "user", result.error
    assert json.loads((rollout.dir / "prompts.json").read_text()) == ["Do it."]
    assert {body["model"] for body in asked} == {"tasks-model"} and "You are grumpy." in str(asked[0])
    mine, _, _ = await talk(task, [], [{"say": "Done."}], prompts=["My own."])
    assert mine.loop is None, "prompts of one's own win"


@pytest.mark.parametrize(
    ("user", "more", "why"),
    [
        ("{stop_rule: never}", "", "a simulated user with 'stop_rule', which nobody here can play"),
        ("{model: 7}", "", "a simulated user with 'model'"),
        ("{model: x}", "agents: {roles: {a: {agent: x}}}\nscenes: [{turns: [a]}]\n", "a simulated user with 'scenes'"),
    ],
)
async def test_a_tasks_user_that_nobody_can_play_is_refused(talk, examples, tmp_path, user, more, why):
    with pytest.raises(CapabilityMissing, match=why):
        await talk(with_user(examples, tmp_path, user, more), [], [])
