"""The loops on a real box with a real ACP agent, and the kit's own checks."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from benchflow_driver_scenes.feedback import feedback
from benchflow_testing_kit import DriverConformance

from benchflow_core.contracts import SoftVerdict
from benchflow_core.errors import ConfigurationError

TASK = Path(__file__).parents[4] / "examples" / "tasks" / "hello-file"
GREET = 'echo "Hello, $(cat /app/name.txt)!" > /app/hello.txt'


@pytest.fixture(autouse=True)
def clean(tmp_path, monkeypatch):
    monkeypatch.setenv("BENCHFLOW_CACHE", str(tmp_path / "cache"))


class TestSingleShot(DriverConformance):
    @pytest.fixture
    def plugin(self):
        return "single-shot"


class TestVerifyRetry(DriverConformance):
    @pytest.fixture
    def plugin(self):
        return "verify-retry"


class TestSelfReview(DriverConformance):
    @pytest.fixture
    def plugin(self):
        return "self-review"


class TestBestOfN(DriverConformance):
    @pytest.fixture
    def plugin(self):
        return "best-of-n"


@pytest.fixture
def play(tmp_path):
    async def run(driver, *turns, broken=False, task=TASK, **more):
        from benchflow_core.rollout import Rollout, RolloutConfig

        script = json.dumps({"turns": [[{"run": command}] for command in turns]})
        config = RolloutConfig(
            task,
            agent="scripted",
            sandbox="local",
            agent_options={"script": script},
            driver=driver,
            **more,
            jobs_dir=tmp_path / "jobs",
        )
        rollout = await Rollout.create(config)
        result = await rollout.run()
        assert broken or result.error is None, result.error
        prompts = json.loads((rollout.dir / "prompts.json").read_text())
        return result, prompts

    return run


async def test_verify_retry_stops_when_the_tests_pass(play):
    result, prompts = await play("verify-retry:k=3,feedback=none", "true", "true", GREET, "rm /app/hello.txt")
    assert result.rewards == {"reward": 1.0}
    loop = result.to_json()["loop"]
    assert loop["reward_trajectory"] == [0.0, 0.0, 1.0] and loop["stop_reason"] == "passed_bar"
    assert (loop["iterations_run"], loop["first_pass_iteration"]) == (3, 2)
    assert loop["params"] == {"k": 3, "feedback": "none"}
    assert prompts[1] == prompts[2] == "The task is not solved yet. Find out what is wrong and fix it."


@pytest.mark.parametrize("demanded", [False, True])
async def test_the_tests_between_rounds_leave_the_agent_alone(play, tmp_path, demanded):
    """Also where they score in its own box: its session goes on, and nothing of the tests is there afterwards."""
    task = shutil.copytree(TASK, tmp_path / "task")
    if demanded:
        toml = task / "task.toml"
        toml.write_text(toml.read_text().replace("[metadata.benchflow]", '[metadata.benchflow]\nisolation = "shared"'))
    look = f"ls -A /tests /logs/verifier | grep -v : | grep . || {GREET}"
    result, _ = await play("verify-retry:k=1", "true", look, task=task, **({} if demanded else {"isolation": "shared"}))
    assert result.rewards == {"reward": 1.0} and result.isolation == "shared"
    assert result.loop["reward_trajectory"] == [0.0, 1.0]
    assert any("between turns the tests ran in the agent's own box" in n for n in result.notices) is demanded


async def test_verify_retry_gives_up_after_k(play):
    result, prompts = await play("verify-retry:k=1", "true", "true", GREET)
    assert result.rewards == {"reward": 0.0}
    assert (len(prompts), result.loop["stop_reason"]) == (2, "max_iterations")


async def test_self_review_never_hears_of_the_tests(play):
    result, prompts = await play("self-review:k=1", "true", GREET)
    assert result.rewards == {"reward": 1.0} and result.loop["reward_trajectory"] == [0.0, 1.0]
    assert "test" not in prompts[1]


async def test_best_of_n_keeps_the_best_and_starts_each_from_the_same_state(play):
    """Each attempt is a new process, so the script's first turn plays each time: what differs is left in the box."""
    once = f"test -e /app/was-here && echo dirty > /app/hello.txt || {{ touch /app/was-here; {GREET}; }}"
    result, _ = await play("best-of-n:n=2", once)
    assert result.rewards == {"reward": 1.0} and result.loop["iterations_run"] == 1
    wrong = "test -e /app/was-here && echo dirty > /app/dirty; touch /app/was-here"
    result, _ = await play("best-of-n:n=2", wrong)
    assert result.loop["reward_trajectory"] == [0.0, 0.0] and result.loop["chosen"] == 0


class ByTurn(dict):
    """Options of an agent that are others at each attempt."""

    def __init__(self, *commands):
        self.commands, self.rollout = commands, None
        super().__init__(script=self["script"])

    def __getitem__(self, key):
        turn = self.rollout.turn if self.rollout else 0
        return json.dumps([{"run": self.commands[min(turn, len(self.commands) - 1)]}])

    def __iter__(self):  # without it `{**options}` would copy what the dictionary holds
        yield "script"


@pytest.mark.parametrize(
    ("commands", "rewards", "chosen", "failed"),
    [
        (["kill -9 $PPID", GREET], [0.0, 1.0], 1, None),
        (["touch /app/first", f"{GREET}; rm /app/hello.txt; kill -9 $PPID"], [0.0, 0.0], 0, None),
        (["kill -9 $PPID"], [0.0, 0.0], 0, "agent_crashed"),
    ],
)
async def test_an_attempt_whose_agent_fails_takes_nothing_from_the_others(tmp_path, commands, rewards, chosen, failed):
    from benchflow_core.rollout import Rollout, RolloutConfig

    options = ByTurn(*commands)
    config = RolloutConfig(
        TASK, agent="scripted", agent_options=dict(options), sandbox="local", driver="best-of-n:n=2", jobs_dir=tmp_path
    )
    config = config.model_copy(update={"agent_options": options})  # as it is: it says something else every turn
    options.rollout = await Rollout.create(config)
    result = await options.rollout.run()
    assert (result.loop["reward_trajectory"], result.loop["chosen"]) == (rewards, chosen), result.error
    assert result.rewards == {"reward": max(rewards)} and result.loop["failures"]
    assert (result.error_info or {}).get("code") == failed


async def test_a_wrong_parameter_is_refused_before_anything_starts(play):
    with pytest.raises(ConfigurationError, match="no parameter 'kk'"):
        await play("verify-retry:kk=3", "true")
    with pytest.raises(ConfigurationError, match="k=many is not a whole number"):
        await play("verify-retry:k=many", "true")


@pytest.mark.parametrize(
    ("word", "why"),
    [
        ("verify-retry:feedback=everything", "feedback 'everything' is unknown"),
        ("verify-retry:k=-1", "k=-1: at least 0 is needed"),
        ("self-review:k=-2", "k=-2: at least 0 is needed"),
        ("best-of-n:n=0", "n=0: at least 1 is needed"),
        ("verify-retry:k=2,k=3", "says twice what 'k' is"),
        (":k=2", "names no driver"),
    ],
)
async def test_a_parameter_that_means_nothing_is_refused_before_anything_starts(play, tmp_path, word, why):
    with pytest.raises(ConfigurationError, match=why):
        await play(word, "true")
    assert not (tmp_path / "jobs").exists()


@pytest.mark.parametrize("driver", ["single-shot", "verify-retry:k=0", "self-review:k=0", "best-of-n:n=1"])
async def test_the_users_own_prompt_is_the_first(play, driver):
    result, prompts = await play(driver, GREET, prompts=["Greet, please."])
    assert result.rewards == {"reward": 1.0} and prompts == ["Greet, please."]


@pytest.mark.parametrize("driver", ["single-shot", "verify-retry", "self-review", "best-of-n"])
@pytest.mark.parametrize("more", [{"prompts": ["a", "b"]}, {"skill_mode": "self-gen"}])
async def test_prompts_that_would_never_be_said_are_refused(play, tmp_path, driver, more):
    with pytest.raises(ConfigurationError, match="a loop strategy decides every prompt after the first"):
        await play(driver, "true", **more)
    assert not (tmp_path / "jobs").exists()


async def test_a_loop_that_breaks_off_says_how_far_it_came(play):
    result, _ = await play("verify-retry:k=3", "true", "kill -9 $PPID", broken=True)
    assert result.error_info["kind"] == "agent"
    assert (result.loop["iterations_run"], result.loop["stop_reason"]) == (1, "error")
    assert result.loop["reward_trajectory"] == [0.0]


TESTS = ({"name": "test_a[secret-1]", "status": "failed"}, {"name": "test_b", "status": "passed"})


@pytest.mark.parametrize(
    ("level", "told", "hidden"),
    [
        ("none", "not solved yet", "test_a"),
        ("counts", "1 of 2 tests pass", "test_a"),
        ("names", "- test_a", "secret"),
        ("raw", "the output", ""),
    ],
)
def test_feedback_tells_no_more_than_asked(level, told, hidden):
    text = feedback(SoftVerdict({"reward": 0.0}, output="the output with secret", tests=TESTS), level)
    assert told in text and (not hidden or hidden not in text)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("tests/test_x.py::TestX::test_y[a\nsecret]", "- tests/test_x.py::TestX::test_y\n"),
        ("test_y (n=3, wanted='secret')", "- test_y\n"),
        ("The report says secret", "0 of 1 tests pass"),
        ("[secret]", "0 of 1 tests pass"),
    ],
)
def test_a_name_gives_nothing_of_the_test_away(name, told):
    text = feedback(SoftVerdict({"reward": 0.0}, tests=({"name": name, "status": "failed"},)), "names")
    assert told in f"{text}\n" and "secret" not in text


def test_no_flood_of_names():
    tests = tuple({"name": f"test_{n}", "status": "failed"} for n in range(1000))
    text = feedback(SoftVerdict({"reward": 0.0}, tests=tests), "names")
    assert text.count("\n- ") == 51 and text.endswith("- and 950 more")


def test_an_unknown_level_is_refused():
    with pytest.raises(ConfigurationError, match="feedback 'all' is unknown"):
        feedback(SoftVerdict(None), "all")
