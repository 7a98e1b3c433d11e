"""Multi-step tasks and verifiers with a box of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchflow_core.contracts.sandboxes import NetworkPolicy
from benchflow_core.errors import TaskError

ONE = {"steps/a/instruction.md": "A.\n"}
TWO = {**ONE, "steps/b/instruction.md": "B.\n"}
STEPS = '[[steps]]\nname = "a"\n[[steps]]\nname = "b"\n'


def test_what_a_step_inherits_and_what_it_says_itself(harbor) -> None:
    task = harbor(
        """
multi_step_reward_strategy = "final"
artifacts = ["/all"]
[agent]
timeout_sec = 100
user = "bob"
network_mode = "no-network"
[verifier]
user = "tester"
network_mode = "no-network"
env = {A = "1", B = "1"}
[[verifier.collect]]
command = "first"

[[steps]]
name = "a"
min_reward = 0.5

[[steps]]
name = "b"
min_reward = {reward = 1, speed = "0.5"}
artifacts = ["/b"]
[steps.agent]
timeout_sec = 5
user = "root"
network_mode = "public"
[steps.verifier]
timeout_sec = 7
user = 0
network_mode = "allowlist"
allowed_hosts = ["x.y"]
env = {B = "2"}
[[steps.verifier.collect]]
command = "second"
[steps.healthcheck]
command = "true"
""",
        **TWO,
        **{"steps/b/workdir/setup.sh": "x", "steps/b/solution/solve.sh": "x", "solution/solve.sh": "x"},
    )
    a, b = task.steps
    assert (task.instruction, a.instruction, b.instruction) == ("", "A.\n", "B.\n")
    assert (a.agent_timeout, a.agent_user, a.agent_network) == (100.0, "bob", NetworkPolicy("none"))
    assert (b.agent_timeout, b.agent_user, b.agent_network) == (5.0, "root", NetworkPolicy())
    assert (a.verifier.user, a.verifier.network, a.verifier.env) == (
        "tester",
        NetworkPolicy("none"),
        {"A": "1", "B": "1"},
    )
    assert (b.verifier.user, b.verifier.env) == ("0", {"A": "1", "B": "2"})
    assert b.verifier.network == NetworkPolicy("allowlist", ("x.y",))
    assert [h.command for h in b.verifier.collect] == ["first", "second"]
    assert [x.source for x in b.artifacts] == ["/all", "/b"]
    assert (a.min_reward, b.min_reward) == (0.5, {"reward": 1.0, "speed": 0.5})
    assert a.solution.dir.name == "solution" and a.solution.dir.parent == task.path
    assert b.solution.dir.parent.name == "b" and b.workdir_files and b.healthcheck
    assert task.dialect.combine([{"reward": 0.0}, {"reward": 1.0}]) == {"reward": 1.0}


def test_the_timeout_quirk_is_reproduced_and_said(harbor) -> None:
    task = harbor(f"[verifier]\ntimeout_sec = 1800\n{STEPS}[steps.verifier]\ntimeout_sec = 5\n", **TWO)
    assert [step.verifier.timeout for step in task.steps] == [600.0, 5.0]
    assert (
        "task.toml:2: as in Harbor, verifier.timeout_sec = 1800 does not reach the steps: a get 600 s"
        in task.notices[0]
    )


def test_tests_are_laid_over_each_other(harbor) -> None:
    task = harbor(STEPS, **TWO, **{"steps/b/tests/test.sh": "x"})
    names = [[folder.relative_to(task.path).as_posix() for folder in step.verifier.tests] for step in task.steps]
    assert names == [["tests"], ["tests", "steps/b/tests"]]


def test_only_a_step_has_tests(harbor) -> None:
    task = harbor('[[steps]]\nname = "a"\n', **ONE, **{"tests/test.sh": None, "steps/a/tests/test.sh": "x"})
    assert [folder.parent.name for folder in task.steps[0].verifier.tests] == ["a"]


@pytest.mark.parametrize(
    ("config", "files", "message"),
    [
        (STEPS, ONE, "steps/b: does not exist, but task.toml has a step 'b'."),
        (STEPS, {**ONE, "steps/b/tests/test.sh": "x"}, "steps/b/instruction.md: does not exist."),
        (STEPS, {**TWO, "tests/test.sh": None}, "steps/a/tests/test.sh: does not exist: step 'a' has no test."),
        ('[[steps]]\nname = "a"\n[[steps]]\nname = "A"\n', TWO, "task.toml:4: two steps are named 'A'."),
        ('[[steps]]\nname = "é"\n[[steps]]\nname = "e\\u0301"\n', TWO, "task.toml:4: two steps are named"),
        ('[[steps]]\nname = "../x"\n', {}, "task.toml:2: steps[0].name must be a folder name"),
        ('[[steps]]\nname = "nul.txt"\n', {}, "a folder name that every system can have"),
        ('[[steps]]\nname = "a."\n', {}, "a folder name that every system can have"),
        (f'[[steps]]\nname = "{"x" * 256}"\n', {}, "a folder name that every system can have"),
        ('[[steps]]\nname = "a"\nmin_reward = {a = "x"}\n', ONE, "task.toml:3: steps[0].min_reward.a must be a number"),
        ("[[steps]]\nmin_reward = 1\n", {}, "task.toml:1: steps[0].name is missing"),
    ],
)
def test_broken_steps(harbor, config: str, files: dict[str, str], message: str) -> None:
    with pytest.raises(TaskError) as caught:
        harbor(config, **files)
    assert message in caught.value.message


SEPARATE = '[verifier]\nenvironment_mode = "separate"\n'
IMAGES = {
    "the agent's own": (SEPARATE, {}, None, "environment", False),
    "its own limits, the agent's image": ("[verifier.environment]\ncpus = 3\n", {}, None, "environment", False),
    "a Dockerfile in tests": (SEPARATE, {"tests/Dockerfile": "x"}, None, "tests", True),
    "a named image": ('[verifier.environment]\ndocker_image = "v"\n', {}, "v", "tests", True),
    "the name wins over the file": (
        '[verifier.environment]\ndocker_image = "v"\n',
        {"tests/Dockerfile": "x"},
        "v",
        "tests",
        True,
    ),
    "the agent's prebuilt": (f'{SEPARATE}[environment]\ndocker_image = "e"\n', {}, "e", "environment", False),
}


@pytest.mark.parametrize("case", IMAGES)
def test_where_a_separate_verifier_gets_its_image(harbor, case: str) -> None:
    config, files, image, folder, bundled = IMAGES[case]
    settings = harbor(config, **files).verifier
    assert settings.isolation == "separate"
    assert (settings.environment.image, settings.environment.context.name) == (image, folder)
    assert bool(settings.tests) is not bundled


def test_the_order_of_places_for_a_step(harbor) -> None:
    def image(task: str, step: str, *files: str) -> str:
        config = f'[verifier.environment]\n{task}\n[[steps]]\nname = "a"\n[steps.verifier.environment]\n{step}\n'
        box = harbor(config, **ONE, **dict.fromkeys(files, "x")).steps[0].verifier.environment
        return box.image or str(Path(box.context).name)

    named = 'docker_image = "task"'
    assert image(named, 'docker_image = "step"', "steps/a/tests/Dockerfile") == "step"
    assert image(named, "cpus = 1") == "task"
    assert image("cpus = 1", "cpus = 1") == "environment"


def test_a_step_file_comes_before_the_tasks_image(harbor) -> None:
    config = '[verifier.environment]\ndocker_image = "task"\n[[steps]]\nname = "a"\n'
    settings = harbor(config, **ONE, **{"steps/a/tests/Dockerfile": "x"}).steps[0].verifier
    assert settings.environment.image is None and settings.environment.context.parent.name == "a"
    assert settings.tests == ()


def test_a_step_can_go_back_to_the_shared_box(harbor) -> None:
    task = harbor(SEPARATE + STEPS + '[steps.verifier]\nenvironment_mode = "shared"\n', **TWO)
    assert [step.verifier.isolation for step in task.steps] == ["separate", None]


def test_a_bundled_image_needs_no_script(harbor) -> None:
    config = '[verifier.environment]\ndocker_image = "v"\n'
    assert harbor(config, **{"tests/test.sh": None}).verifier.tests == ()
