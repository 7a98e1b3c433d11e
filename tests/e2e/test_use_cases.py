"""The use cases: each example is run as its first line says."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

FOLDER = Path(__file__).parents[2] / "examples" / "use-cases"
PREFIX = os.environ.get("BENCHFLOW_TEST_PREFIX", "")


SEEDS = FOLDER.parents[1] / "tests" / "data" / "seeds"


def told(text: str) -> list[object]:
    """What a config says of who speaks when, and of services."""
    config = yaml.safe_load(text)
    scenes = [(s["name"], [r["name"] for r in s["roles"]], s["turns"]) for s in config.get("scenes", ())]
    return [config.get("services"), *scenes]


NEED_MORE = ("stateful_environment", "mcp-review", "mcp_review")
"""Those with a test of their own."""


@pytest.mark.parametrize(
    "file", sorted(p for p in FOLDER.glob("*.yaml") if p.stem not in NEED_MORE), ids=lambda path: path.stem
)
def test_use_case(bench, result_of, name, file, tmp_path):
    text = file.read_text().replace("agent: scripted", f"agent: {name('scripted')}")
    text = text.replace("environment: local", f"environment: {name('local')}")
    (tmp_path / "examples/use-cases").mkdir(parents=True)
    (tmp_path / "examples/tasks").symlink_to(FOLDER.parent / "tasks")
    (tmp_path / "benchmarks").symlink_to(FOLDER.parents[1] / "benchmarks")
    for service in ("gmail", "gcal", "slack"):
        text = text.replace(f"  - {service}\n", f"  - {name(service)}\n")
    (tmp_path / "examples/use-cases" / file.name).write_text(text)
    if (public := SEEDS / file.name).exists():
        wanted = told(public.read_text())
        assert told(file.read_text())[: len(wanted)] == wanted, "as the public documents have it"
    command = shlex.split(text.splitlines()[0].removeprefix("# bench "))
    done = bench(*command)
    assert done.code == 0, done.err
    result = result_of()
    assert result["rewards"] == {"reward": 1.0}, result
    events = [json.loads(line) for line in (result["dir"] / "events.jsonl").read_text().splitlines()]
    turns = [e for e in events if e["kind"] == "turn_started"]
    assert len(turns) == text.count("- role:"), "every turn was played"
    messages = [e["data"]["to"] for e in events if e["kind"] == "outbox_message"]
    assert bool(messages) == (".outbox" in text)


@pytest.mark.own_names
def test_the_stateful_environment_in_python(env, tmp_path):
    (tmp_path / "benchmarks").symlink_to(FOLDER.parents[1] / "benchmarks")
    (tmp_path / "home").mkdir(exist_ok=True)
    argv = [sys.executable, str(FOLDER / "stateful_environment.py")]
    done = subprocess.run(argv, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("{'reward': 1.0} ['gmail', 'gcal', 'slack'] sha256:")


@pytest.mark.parametrize(
    "file", sorted(p for p in FOLDER.glob("*.py") if p.stem not in NEED_MORE), ids=lambda path: path.stem
)
def test_use_case_in_python(env, result_of, name, file, tmp_path):
    text = file.read_text()
    for plain in ("scripted", "local"):
        text = text.replace(f'"{plain}"', f'"{name(plain)}"')
    (tmp_path / "examples/use-cases").mkdir(parents=True)
    (tmp_path / "examples/tasks").symlink_to(FOLDER.parent / "tasks")
    (tmp_path / "examples/use-cases" / file.name).write_text(text)
    command = re.search(r"^    python (\S+)$", text, re.MULTILINE)
    argv = [sys.executable, command[1]]
    done = subprocess.run(argv, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    prompts = max(len(re.findall(r"\bTurn\(", text)), 2)
    assert done.stdout == f"Reward: {{'reward': 1.0}} after {prompts} prompts\n"
    result = result_of()
    events = [json.loads(line) for line in (result["dir"] / "events.jsonl").read_text().splitlines()]
    assert any(e["kind"] == "outbox_message" for e in events) == (".outbox" in text)
    if file.stem == "cross_model_review":
        assert "large-model says" in json.dumps(events) and {r["model"] for r in result["roles"].values()} == {
            "small-model",
            "large-model",
        }


@pytest.mark.own_names
@pytest.mark.parametrize("how", ["yaml", "python"])
def test_the_reviewer_as_a_tool(bench, env, result_of, tmp_path, local_model, how):
    """The reviewer is a model: one on loopback has an opinion here."""
    shutil.copytree(FOLDER, tmp_path / "examples/use-cases")
    task = shutil.copytree(FOLDER.parent / "tasks/hello-file", tmp_path / "examples/tasks/hello-file")
    with (task / "instruction.md").open("a") as file:
        file.write("[[fake:opinion]]")
    local_model.script("opinion", [{"text": "hello.txt greets nobody: use the name from name.txt."}])
    provider = {"OPENAI_API_KEY": "sk-provider", "OPENAI_BASE_URL": f"{local_model.base_url}/v1"}
    if how == "yaml":
        done = bench("eval", "create", "--config", "examples/use-cases/mcp-review.yaml", more=provider)
        assert done.code == 0, done.err
    else:
        argv = [sys.executable, "examples/use-cases/mcp_review.py"]
        ran = subprocess.run(argv, cwd=tmp_path, env={**env, **provider}, capture_output=True, text=True, timeout=120)
        assert ran.stdout == "Reward: {'reward': 1.0} after 2 prompts\n", ran.stderr
    result = result_of()
    assert result["rewards"] == {"reward": 1.0} and result["world"]["services"] == ["benchflow-reviewer"], result
    [asked] = local_model.log
    assert "Hello, name!" in str(asked.body), "it saw what the coder had done"
    calls = (result["dir"] / "trajectory/llm_trajectory.jsonl").read_text().splitlines()
    assert len(calls) == 1 and '"benchflow-reviewer"' in calls[0], "counted under its name"


def test_the_reviewer_ablation(bench, name, tmp_path):
    """One job, three arms; the table is what `bench eval compare` prints."""
    source = FOLDER.parent / "reviewer-ablation"
    (tmp_path / "examples/reviewer-ablation").mkdir(parents=True)
    for path in source.iterdir():
        (tmp_path / "examples/reviewer-ablation" / path.name).symlink_to(path)
    text = (source / "ablation.yaml").read_text().replace("agent: scripted", f"agent: {name('scripted')}")
    config = tmp_path / "examples/reviewer-ablation/ablation.yaml"
    config.unlink()
    config.write_text(text.replace("environment: local", f"environment: {name('local')}"))
    commands = re.findall(r"^#\s+bench (.*)$", text, re.MULTILINE)
    ran = bench(*shlex.split(commands[0]))
    assert ran.code == 0, ran.err
    table = [re.split(r"\s{2,}", line) for line in bench(*shlex.split(commands[1])).out.splitlines()[:4]]
    assert table[0][1:] == ["PASS %", "COVERAGE", "AGAINST baseline", "95 % INTERVAL", "P"]
    assert [row[:3] for row in table[1:]] == [
        ["baseline", "16.7", "6/6"],
        ["reviewer", "50", "6/6"],
        ["reviewer+spec", "100", "6/6"],
    ]
    assert [row[3] for row in table[2:]] == ["+33.3", "+83.3"]
