"""The use cases and calls of the public documents, as written: their YAML, their Python, the agents and the cloud they name.

Daytona is a server of this machine that speaks its protocol, with real boxes behind it; `gemini` and `claude-agent-acp` are
the real programs, and the model they ask is scripted (`documented.py`). Nothing else is changed.
"""

from __future__ import annotations

import ast
import json
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from .documented import FEEDBACK, GOAL, HINT, LGTM, REVIEW, SAID, play

pytestmark = [pytest.mark.agents, pytest.mark.xdist_group("documented"), pytest.mark.timeout(3000)]
SEEDS = Path(__file__).parents[1] / "data" / "seeds"
KEY = "sk-provider-key-that-must-stay-outside"
HAIKU = "anthropic/claude-haiku-4-5-20251001"
FLASH = "gemini-3.1-flash-lite-preview"
"""What `flash` stands for in two snippets of 0.3: no model is called so, see docs/reference/older-names.md."""
WRAPPER = """
import ast, asyncio, inspect, json, sys
from pathlib import Path
import benchflow as bf
from benchflow.trial import Role, Scene, TrialConfig, Turn

code = compile(Path(sys.argv[1]).read_text(), sys.argv[1], "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
task_path = Path("tasks/my-task")
names = {"Path": Path, "asyncio": asyncio, "bf": bf, "task_path": task_path}
names |= {"Role": Role, "Scene": Scene, "TrialConfig": TrialConfig, "Turn": Turn}
names["config"] = TrialConfig(task_path=task_path, agent="gemini", environment="daytona")

async def main():
    work = eval(code, names)
    if inspect.isawaitable(work):
        await work
    if "scene" in names:  # what was only put together is run as well
        names["config"] = names["config"].model_copy(update={"agent": None, "scenes": [names["scene"]]})
    if isinstance(names["config"], bf.JobConfig):
        config = names["config"].model_copy(
            update={"sandbox": "daytona", "concurrency": 1, "sandbox_options": {"create_tries": "1"}}
        )
        names["result"] = await bf.Job(tasks_dir="path/to/tasks", config=config).run()
    elif "result" not in names and isinstance(names["config"], TrialConfig):
        names["result"] = await bf.run(names["config"])

if sys.argv[2] == "plain":
    eval(code, names)
else:
    asyncio.run(main())
"""


@pytest.fixture(scope="module")
def model() -> Iterator[Any]:
    from benchflow_testing.server import LocalModel

    with LocalModel() as model:
        yield model


@pytest.fixture
def place(tmp_path: Path, examples: Path, claws_task: Callable[[Path], Path], env, model, agent_cache, cloud_server):
    """A folder as the documents assume it, the variables that a user would have set, and the cloud."""
    cloud = cloud_server("daytona")
    cloud.reset()
    folders = (".ref/terminal-bench-2", ".ref/skillsbench/tasks", "path/to/tasks")
    for target in ("tasks/my-task", "tasks/X", "path/to/task", *(f"{folder}/ada" for folder in folders)):
        shutil.copytree(examples / "hello-file", tmp_path / target)
    for folder in folders:
        task = shutil.copytree(examples / "hello-file", tmp_path / folder / "bob")
        (task / "environment/name.txt").write_text("Bob\n")
        (task / "tests/test.sh").write_text((task / "tests/test.sh").read_text().replace("Ada", "Bob"))
    for target in ("tasks", ".ref/clawsbench/tasks"):
        claws_task(tmp_path / target / "schedule-meeting-from-email")
    (tmp_path / "home").mkdir()
    url = model.base_url
    keys = {"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": url, "GEMINI_API_KEY": KEY, "GOOGLE_GEMINI_BASE_URL": url}
    yield tmp_path, {**env, **cloud.env, **keys, "BENCHFLOW_CACHE": str(agent_cache)}, cloud
    assert cloud.boxes == [], "a box was left"
    cloud.check()


@pytest.fixture
def create(place, command, model):
    """Run a document's YAML; gives its rollouts by the name of their task."""

    def run(document: str, *argv: str) -> dict[str, Rollout]:
        folder, env, _ = place
        play(model, document)
        if not argv:
            shutil.copy(SEEDS / document, folder / "job.yaml")
            argv = ("eval", "create", "--config", "job.yaml")
        done = subprocess.run([*command, *argv], cwd=folder, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr + describe(folder)
        return rollouts(folder)

    return run


@pytest.fixture
def python(place, model):
    """Run a document's Python; gives what it printed, and its rollouts in their order."""

    def run(name: str) -> tuple[list[str], list[Rollout]]:
        folder, env, _ = place
        play(model, f"{name}.py")
        code = folder / f"{name}.py"
        code.write_text((SEEDS / code.name).read_text().replace('"flash"', f'"{FLASH}"'))
        argv = [sys.executable, "-c", textwrap.dedent(WRAPPER), str(code)]
        argv.append("plain" if name in ("run-by-name", "sdk") else "whole")
        done = subprocess.run(argv, cwd=folder, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr + describe(folder)
        return done.stdout.splitlines(), sorted(every(folder), key=lambda one: one.result["started_at"])

    return run


class Rollout:
    """What one rollout left."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.result = json.loads((folder / "result.json").read_text())
        self.events = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]

    def of(self, kind: str, role: str | None = None) -> list[dict[str, Any]]:
        return [e for e in self.events if e["kind"] == kind and role in (None, e.get("role"))]

    def prompts(self, role: str | None = None) -> list[str]:
        return [e["data"]["prompt"] for e in self.of("turn_started", role)]

    def messages(self) -> list[tuple[str, str, str]]:
        return [(m["from"], m["to"], m["content"]) for m in (e["data"] for e in self.of("outbox_message"))]

    def sessions(self, role: str | None = None) -> list[str]:
        return [e["session"] for e in self.of("turn_started", role)]

    def failed(self) -> list[str]:
        """Tool calls that did not work."""
        return [json.dumps(e["data"]) for e in self.of("tool_call_update") if e["data"].get("status") == "failed"]

    def check(self) -> None:
        """Every field that the documents name."""
        assert self.result["rewards"] == {"reward": 1.0}, self.result["error"]
        assert self.result["sandbox"] == "daytona" and self.result["image_fidelity"] == "exact"
        assert self.result["agent_result"]["usage_source"] == "provider_response"
        assert self.result["agent_result"]["total_tokens"] > 0 and self.result["n_tool_calls"] > 0
        assert self.result["error"] is None and self.result["verifier_error"] is None
        wanted = ("config.json", "timing.json", "prompts.json", "agent/install-stdout.txt", "verifier/reward.txt")
        assert [
            name for name in (*wanted, "trajectory/acp_trajectory.jsonl") if not (self.folder / name).exists()
        ] == []
        everything = b"".join(path.read_bytes() for path in self.folder.rglob("*") if path.is_file())
        assert KEY.encode() not in everything


def every(folder: Path) -> list[Rollout]:
    found = [path.parent for path in (folder / "jobs").glob("**/result.json") if "attempts" not in path.parts]
    return [Rollout(path) for path in sorted(found)]


def rollouts(folder: Path) -> dict[str, Rollout]:
    return {one.result["task_name"]: one for one in every(folder)}


def describe(folder: Path) -> str:
    """For a test that failed: how each rollout ended."""
    return "".join(
        f"\n{r.result['task_name']}: {r.result['rewards']} {r.result['error']} {r.failed()}" for r in every(folder)
    )


# --- the YAML of the use cases ------------------------------------------------------------------------------


def test_interactive_user(create, model):
    for one in create("interactive-user.yaml").values():
        one.check()
        assert one.messages() == [
            ("user", "assistant", GOAL),
            ("user", "assistant", HINT),
            ("user", "assistant", LGTM),
        ]
        told = one.prompts("assistant")
        assert [word in text for word, text in zip((GOAL, HINT, LGTM), told, strict=True)] == [True] * 3
        assert "Write a greeting" in told[0] and "Write a greeting" not in told[1], "the first is the instruction"
        assert {seen.model for seen in model.log} >= {"gemini-3.1-flash-lite-preview", "claude-sonnet-4-6"}
        assert [len(set(one.sessions(role))) for role in ("user", "assistant")] == [1, 1]
        assert len(one.failed()) <= 1, "/solution is locked from the assistant, and nothing else fails"


@pytest.mark.parametrize("document", ["review-loop.yaml", "cross-model-review.yaml"])
def test_review(create, model, document):
    found = create(document)
    assert set(found) == {"ada", "bob"}
    for one in found.values():
        one.check()
        assert one.messages() == [("reviewer", "coder", FEEDBACK)]
        first, revised = one.prompts("coder")
        assert FEEDBACK not in first and FEEDBACK in revised and "revise your solution" in revised
        models = {"gemini-3.1-flash-lite-preview"} | ({"claude-sonnet-4-6"} if "cross" in document else set())
        assert {seen.model for seen in model.log} >= models
        assert one.failed() == []


def test_skill_generation(create, model):
    for one in create("skill-generation.yaml").values():
        one.check()
        assert [e["scene"] for e in one.of("turn_started")] == ["skill-gen", "solve"]
        assert len(set(one.sessions())) == 2 and one.failed() == []
    solving = [seen for seen in model.log if seen.scenario == "prompt-0"]
    assert solving and not [s for s in solving if "Analyze the task requirements" in json.dumps(s.body)], "context bled"


def test_multi_turn(create, model):
    for one in create("multi-turn.yaml").values():
        one.check()
        assert len(one.prompts()) == 3 and len(set(one.sessions())) == 1 and one.failed() == []
    last = [json.dumps(seen.body) for seen in model.log if seen.scenario == "prompt-2"]
    assert last and all("Run the tests if available" in body and "Write a greeting" in body for body in last)


def test_stateful_environment(create):
    """Nobody is named: Claude Code runs with its own model, and says so."""
    [one] = create("stateful-environment.yaml").values()
    one.check()
    assert (one.result["agent"], one.result["model"]) == ("claude-agent-acp", HAIKU)
    assert sorted(one.result["world"]["services"]) == ["gcal", "gmail", "slack"] and one.failed() == []


def test_a_job_whose_agent_nobody_named(create, place):
    """`benchflow job -t .ref/terminal-bench-2 -e daytona -c 64`: the default agent and its default model, recorded."""
    found = create("phases.py", "job", "-t", ".ref/terminal-bench-2", "-e", "daytona", "-c", "64")
    assert set(found) == {"ada", "bob"}
    for one in found.values():
        one.check()
        for file in (one.folder / "result.json", one.folder / "config.json", one.folder.parent / "summary.json"):
            value = json.loads(file.read_text())
            assert (value["agent"], value["model"]) == ("claude-agent-acp", HAIKU), file
        names = sorted(path.name for path in (one.folder / "agent").iterdir())
        assert names == ["claude_agent_acp.txt", "install-stdout.txt"]


# --- Python ---------------------------------------------------------------------------------------------------


def test_every_document_is_run():
    names = {path.name for path in SEEDS.iterdir()} - {"README.md"}
    assert names == set(SAID)


def test_interactive_user_in_python(python):
    _, [one] = python("interactive-user")
    one.check()
    assert one.messages() == [("user", "assistant", GOAL), ("user", "assistant", HINT)]
    assert HINT in one.prompts("assistant")[1]


@pytest.mark.parametrize("name", ["cross-model-review", "coder-reviewer", "scenes"])
def test_review_in_python(python, name):
    _, [one] = python(name)
    one.check()
    assert one.messages() == [("reviewer", "coder", FEEDBACK)] and FEEDBACK in one.prompts("coder")[1]


def test_reviewer_beside_the_agent(python):
    _, [one] = python("mcp-reviewer")
    one.check()
    said = [json.dumps(e["data"]) for e in one.of("tool_call_update")]
    assert any(REVIEW in text for text in said), "what the reviewer said reaches the coder"
    assert len(one.of("service_log")) == 1 and len(set(one.sessions())) == 1


@pytest.mark.parametrize("name", ["skill-generation", "byos", "trial-config"])
def test_skill_generation_in_python(python, name):
    _, [one] = python(name)
    one.check()
    assert len(set(one.sessions())) == 2 and one.failed() == []


def test_multi_turn_in_python(python):
    _, [one] = python("multi-turn")
    one.check()
    assert len(one.prompts()) == 3 and len(set(one.sessions())) == 1


def test_stateful_environment_in_python(python):
    _, [one] = python("stateful-environment")
    one.check()
    assert sorted(one.result["world"]["services"]) == ["gcal", "gmail", "slack"]


def test_a_config_that_names_a_folder(python, place):
    shutil.copy(SEEDS / "multi-turn.yaml", place[0] / "trial.yaml")
    _, found = python("from-yaml")
    assert sorted(one.result["task_name"] for one in found) == ["ada", "bob"]
    for one in found:
        one.check()
        assert len(one.prompts()) == 3


def test_phases_by_hand(python):
    _, found = python("phases")
    whole, composed = found
    whole.check()
    composed.check()
    assert composed.prompts() == ["custom prompt"]


@pytest.mark.parametrize(("name", "count"), [("runtime", 1), ("calling-conventions", 3)])
def test_calling_conventions(python, name, count):
    _, found = python(name)
    assert [one.result["rewards"] for one in found] == [{"reward": 1.0}] * count
    assert [one.result["model"] for one in found][-1] == "gemini-3.1-flash-lite-preview"


def test_run_by_name(python):
    printed, [one] = python("run-by-name")
    assert printed[-2:] == ["Reward: {'reward': 1.0}", "Tool calls: 1"]
    assert one.result["n_tool_calls"] == 1


def test_sdk(python):
    printed, found = python("sdk")
    rewards, calls, score, metrics = printed
    assert (rewards, calls, score) == ("{'reward': 1.0}", "1", "2/2 (100.0%)")
    assert ast.literal_eval(metrics)["benchmark"] == "TB2" and ast.literal_eval(metrics)["passed"] == 2
    assert len(found[1].prompts()) == 2 and len(set(found[1].sessions())) == 1
    assert {one.result["task_name"] for one in found[2:]} == {"ada", "bob"}
    for one in found:
        one.check()


def test_retries_of_a_job(python, place):
    """A cloud that opens no box for a while: the rollout is tried again, and scored."""
    folder, _, cloud = place
    shutil.rmtree(folder / "path/to/tasks/bob")
    cloud.fault("POST /sandbox", status=503)
    _, [one] = python("job-retry")
    one.check()
    attempts = list((folder / "jobs").glob("*/attempts/*/result.json"))
    assert len(attempts) == 1 and one.result["attempt"] == 2
    assert {json.loads(path.read_text())["error_info"]["kind"] for path in attempts} == {"infrastructure"}
