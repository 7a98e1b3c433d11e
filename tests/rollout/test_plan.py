"""What cannot work is refused before anything starts, naming what is missing and who has it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from benchflow_core.errors import CapabilityMissing, ConfigurationError, PluginError
from benchflow_core.plugins import registry
from benchflow_core.rollout.plan import make_plan
from benchflow_core.settings.models import RolloutConfig

EXAMPLES = Path(__file__).parents[2] / "examples" / "tasks"


@pytest.fixture
def task(tmp_path):
    return shutil.copytree(EXAMPLES / "hello-file", tmp_path / "task")


def plan(task, env=None, **settings):
    return make_plan(RolloutConfig(task, **{"agent": "oracle", "sandbox": "local", **settings}), registry(), env or {})


def append(task, text):
    path = task / "task.toml"
    path.write_text(path.read_text() + "\n" + text)


def test_a_compose_task_is_refused_where_there_is_no_compose(task):
    (task / "environment" / "docker-compose.yaml").write_text("services:\n  main:\n    image: x\n")
    with pytest.raises(
        CapabilityMissing, match=r"needs 'compose' \(.*docker-compose.yaml\), which sandbox 'local' does not have"
    ):
        plan(task)


def test_an_image_is_refused_unless_a_substitute_is_allowed(task):
    text = (task / "task.toml").read_text().replace("allow_substitute = true", "")
    (task / "task.toml").write_text(text)
    with pytest.raises(CapabilityMissing, match="image-build") as refused:
        plan(task)
    assert "--allow-substitute" in (refused.value.remedy or "")
    assert plan(task, allow_substitute=True).task.name


@pytest.mark.parametrize(
    ("toml", "missing"),
    [('[environment]\nos = "windows"\n', "windows"), ("[environment]\ngpus = 1\n", "gpu")],
)
def test_what_a_sandbox_cannot_do_is_never_ignored(task, toml, missing):
    append(task, toml)
    (task / "tests" / "test.bat").write_text("rem a test for windows\n")
    with pytest.raises(CapabilityMissing, match=f"needs '{missing}'"):
        plan(task)


def test_limits_that_are_not_enforced_are_noticed(task):
    append(task, "[environment]\nstorage_mb = 100\n")
    assert any("limit-storage" in notice for notice in plan(task).notices)


def test_unknown_names(task):
    with pytest.raises(PluginError, match="Unknown sandbox 'nowhere'"):
        plan(task, sandbox="nowhere")
    with pytest.raises(PluginError, match="Unknown agent 'nobody'"):
        plan(task, agent="nobody")


def test_roles_and_turns_must_fit(task):
    from benchflow_core.contracts.scenes import Role, Scene, Turn

    with pytest.raises(ConfigurationError, match="which the scene does not have"):
        plan(task, agent=None, scenes=[Scene("s", [Role("a", "oracle")], [Turn("b")])])
    with pytest.raises(ConfigurationError, match="names a role twice"):
        plan(task, agent=None, scenes=[Scene("s", [Role("a", "oracle"), Role("a", "nop")], [])])
    with pytest.raises(ConfigurationError, match="defined differently"):
        plan(task, agent=None, scenes=[Scene("s", [Role("a", "oracle")]), Scene("t", [Role("a", "nop")])])
    for word in ({"agent": "nop"}, {"agent": None, "model": "m"}, {"agent": None, "prompts": ["x"]}):
        with pytest.raises(
            ConfigurationError, match="would do nothing: the scenes name their agents, models and prompts"
        ):
            plan(task, **word, scenes=[Scene("s", [Role("a", "oracle")])])


def test_isolation_that_cannot_be_had(task):
    assert plan(task).isolation == "fresh"
    assert plan(task, isolation="shared").isolation == "shared"
    with pytest.raises(CapabilityMissing, match="isolation 'separate' cannot be had"):
        plan(task, isolation="separate")


def test_the_plan_names_every_plugin(task):
    kinds = [stamp["kind"] for stamp in plan(task).plugins()]
    assert kinds == sorted(kinds) == ["adapter", "agent", "driver", "feature", "sandbox", "verifier"]


def test_a_task_with_scenes_of_its_own(task, tmp_path):
    doc = shutil.copytree(EXAMPLES / "hello-doc", tmp_path / "doc")
    text = (doc / "task.md").read_text()
    head, body = text.split("---\n\n", 1)
    scenes = (
        "agents:\n  roles:\n    coder: {agent: nop}\n    checker: {agent: nop}\nscenes:\n  - name: work\n    turns:\n"
        "      - {role: coder}\n      - {role: checker, prompt: Check it.}\n"
    )
    (doc / "task.md").write_text(f"{head}{scenes}---\n\n{body}")
    own = make_plan(RolloutConfig(doc), registry(), {})
    assert [(s.role, s.prompt) for s in own.steps] == [("coder", None), ("checker", "Check it.")]
    assert {r.agent for r in own.roles.values()} == {"nop"}
    told = make_plan(RolloutConfig(doc, agent="oracle"), registry(), {})
    assert {r.agent for r in told.roles.values()} == {"oracle"}
    prompted = make_plan(RolloutConfig(doc, agent="oracle", prompts=["mine"]), registry(), {})
    assert [s.prompt for s in prompted.steps] == ["mine"]
