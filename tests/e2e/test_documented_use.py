"""The use cases and calls of the public documents run as written: only agents and sandbox are redirected."""

from __future__ import annotations

import ast
import json
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

SEEDS = Path(__file__).parents[1] / "data" / "seeds"
BLOCKED = ["benchflow-agent-gemini", "benchflow-agent-claude", "benchflow-sandbox-daytona"]
SANDBOX = """
from benchflow_sandbox_local.plugin import benchflow_sandbox
"""
AGENT = r"""
import json
from dataclasses import replace
from benchflow_agent_scripted.plugin import benchflow_agent as scripted, prepare
from benchflow_core.hookspecs import hookimpl

GREET = '[ -e /app/name.txt ] && echo "Hello, $(cat /app/name.txt)!" > /app/hello.txt || exec sh /app/solve.sh'
HINT = '{"to": "%s", "content": "hint from %s"}'
RUNS = {
    "user": f"grep -q name.txt /app/instruction.md; cat /solution/solve.sh && echo '{HINT % ('assistant', 'user')}' > /app/.outbox/assistant.json",
    "reviewer": f"echo '{HINT % ('coder', 'reviewer')}' > /app/.outbox/coder.json",
    "gen": "echo help > /app/generated-skill.md",
}

def play(context):
    script = json.dumps({"otherwise": [{"run": RUNS.get(context.role, GREET)}]})
    return prepare(replace(context, options={"script": script}))

@hookimpl
def benchflow_agent():
    default = {"default_rank": 1, "default_model": "anthropic/claude-haiku-4-5-20251001"}
    return replace(scripted(), prepare=play, name="claude-agent-acp", **default)
"""
WRAPPER = """
import ast, asyncio, inspect, json, sys
from pathlib import Path
from benchflow_core.plugins import Policy, configure
configure(Policy.read(none=False, blocked=json.loads(sys.argv[1]), strict=False), lambda line, cause: None)
import benchflow as bf
from benchflow.trial import Role, Scene, TrialConfig, Turn

code = compile(Path(sys.argv[2]).read_text(), sys.argv[2], "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
task_path = Path("tasks/my-task")
names = {"Path": Path, "asyncio": asyncio, "bf": bf, "task_path": task_path}
names |= {"Role": Role, "Scene": Scene, "TrialConfig": TrialConfig, "Turn": Turn}
names["config"] = TrialConfig(task_path=task_path, agent="gemini", environment="daytona")

async def main():
    work = eval(code, names)
    if inspect.isawaitable(work):
        await work
    if "result" not in names and isinstance(names["config"], TrialConfig):
        names["result"] = await bf.run(names["config"])

if code.co_flags & inspect.CO_COROUTINE or sys.argv[3] == "run":
    asyncio.run(main())
else:
    eval(code, names)
result = names.get("result")
if result is not None:
    print(json.dumps({"rewards": result.rewards, "prompts": result.n_prompts, "dir": str(result.rollout_dir)}))
"""


@pytest.fixture
def place(tmp_path, examples, env):
    """A folder as the documents assume it: tasks, and agents and a sandbox of the names they use."""
    tasks = ("tasks/my-task", "tasks/X", ".ref/terminal-bench-2/one", ".ref/skillsbench/tasks/one")
    for target in (*tasks, "path/to/task", "path/to/tasks/a", "path/to/tasks/b"):
        shutil.copytree(examples / "hello-file", tmp_path / target)
    claws = examples.parents[1] / "benchmarks/clawsbench/tasks/meeting-from-email"
    for target in ("tasks/schedule-meeting-from-email", ".ref/clawsbench/tasks/one"):
        task = shutil.copytree(claws, tmp_path / target)
        shutil.copytree(claws / "solution", task / "environment", dirs_exist_ok=True)  # the agent's knowledge
        with (task / "environment/Dockerfile").open("a") as file:
            file.write("\nCOPY solve.sh solve.py client.py /app/\n")
    info = tmp_path / "site/redirected-1.0.dist-info"
    info.mkdir(parents=True)
    (tmp_path / "home").mkdir(exist_ok=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: redirected\nVersion: 1.0\n")
    points = "[benchflow.agents]\ngemini = redirected_agent\nclaude-agent-acp = redirected_agent\n"
    (info / "entry_points.txt").write_text(f"{points}[benchflow.sandboxes]\ndaytona = redirected_sandbox\n")
    (tmp_path / "site/redirected_agent.py").write_text(AGENT)
    (tmp_path / "site/redirected_sandbox.py").write_text(SANDBOX)
    return tmp_path, {**env, "PYTHONPATH": str(tmp_path / "site")}


def events_of(folder: Path) -> list[dict]:
    return [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]


def written(kind: str) -> list[pytest.ParameterSet]:
    """Some name services as they are called."""
    own = dict.fromkeys(("mcp-reviewer", "stateful-environment"), pytest.mark.own_names)
    return [pytest.param(name, marks=own.get(name, ())) for name in sorted(p.stem for p in SEEDS.glob(f"*.{kind}"))]


@pytest.mark.parametrize("name", written("py"))
def test_python_as_written(place, name):
    folder, env = place
    shutil.copy(SEEDS / "multi-turn.yaml", folder / "trial.yaml")
    text = (folder / "trial.yaml").read_text().replace(".ref/terminal-bench-2", "tasks/my-task")
    (folder / "trial.yaml").write_text(text)
    mode = "run" if name not in ("run-by-name", "job-retry", "scenes", "sdk") else "plain"
    argv = [sys.executable, "-c", textwrap.dedent(WRAPPER), json.dumps(BLOCKED), str(SEEDS / f"{name}.py"), mode]
    done = subprocess.run(argv, cwd=folder, env=env, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stderr
    if name in ("job-retry", "scenes"):
        return
    if name == "sdk":
        rewards, calls, score, metrics = done.stdout.splitlines()
        assert (rewards, calls, score) == ("{'reward': 1.0}", "1", "2/2 (100.0%)")
        assert ast.literal_eval(metrics)["benchmark"] == "TB2" and ast.literal_eval(metrics)["passed"] == 2
        return
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["rewards"] == {"reward": 1.0}, done.stdout
    if name == "run-by-name":
        assert done.stdout.splitlines()[:2] == ["Reward: {'reward': 1.0}", "Tool calls: 1"]
    if name in ("interactive-user", "cross-model-review", "coder-reviewer"):
        assert any(e["kind"] == "outbox_message" for e in events_of(folder / told["dir"]))


@pytest.mark.parametrize("name", written("yaml"))
def test_configs_as_written(place, command, name):
    folder, env = place
    shutil.copy(SEEDS / f"{name}.yaml", folder / "job.yaml")
    blocked = [word for dist in BLOCKED for word in ("-p", f"no:{dist}")]
    argv = [*command, *blocked, "eval", "create", "--config", "job.yaml"]
    done = subprocess.run(argv, cwd=folder, env=env, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    [result] = (folder / "jobs").glob("*/*/result.json")
    assert json.loads(result.read_text())["rewards"] == {"reward": 1.0}
    events = events_of(result.parent)
    assert sum(e["kind"] == "turn_started" for e in events) == max(
        (SEEDS / f"{name}.yaml").read_text().count("- role:"), 1
    )
    failed = [e["data"] for e in events if e["kind"] == "tool_call_update" and e["data"].get("status") == "failed"]
    assert not failed, "what a prompt names is there"
    assert not [f for f in json.loads(result.read_text())["findings"] if "instruction.md" in f["path"]]


def test_a_job_whose_agent_nobody_named(place, command):
    """`benchflow job -t .ref/terminal-bench-2 -e daytona -c 64`: the default agent and its default model, said and recorded."""
    folder, env = place
    blocked = [word for dist in BLOCKED for word in ("-p", f"no:{dist}")]
    argv = [*command, *blocked, "job", "-t", ".ref/terminal-bench-2", "-e", "daytona", "-c", "64"]
    done = subprocess.run(argv, cwd=folder, env=env, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert "no agent was named: 'claude-agent-acp' is taken" in done.stderr
    [rollout] = [path.parent for path in (folder / "jobs").glob("*/*/result.json")]
    model = "anthropic/claude-haiku-4-5-20251001"
    for file in (rollout / "result.json", rollout / "config.json", rollout.parent / "summary.json"):
        value = json.loads(file.read_text())
        assert (value["agent"], value["model"]) == ("claude-agent-acp", model), file
    assert sorted(path.name for path in (rollout / "agent").iterdir()) == ["claude_agent_acp.txt", "install-stdout.txt"]
    assert "claude-agent-acp (redirected 1.0)" in (rollout / "agent/install-stdout.txt").read_text()
