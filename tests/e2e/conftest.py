"""The end-to-end suite runs the user's own command. Plugin names come from `name()`, so that it also passes when every
plugin is installed under another entry-point name (see test_renamed.py)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
EXAMPLES = HERE.parents[1] / "examples" / "tasks"
PREFIX = os.environ.get("BENCHFLOW_TEST_PREFIX", "")
OWN_NAMES = ("agents", "litellm", "own_names")
"""What is marked so runs programs that know their own names."""
PROGRAM = r"""
import json, os, subprocess, sys, urllib.request

def send(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)

def ask(prompt):
    body = {"model": os.environ["MODEL"], "messages": [{"role": "user", "content": prompt}],
            "tools": [{"type": "function", "function": {"name": "bash", "parameters": {"type": "object",
                       "properties": {"command": {"type": "string"}}, "required": ["command"]}}}]}
    request = urllib.request.Request(os.environ["BASE"] + "/v1/chat/completions", json.dumps(body).encode(),
        {"content-type": "application/json", "authorization": "Bearer " + os.environ["MODEL_KEY"]})
    return json.load(urllib.request.urlopen(request))["choices"][0]["message"]

for line in sys.stdin:
    message = json.loads(line)
    method, number = message.get("method"), message.get("id")
    if method == "initialize":
        send({"id": number, "result": {"protocolVersion": 1, "agentCapabilities": {}, "authMethods": []}})
    elif method == "session/new":
        send({"id": number, "result": {"sessionId": "s"}})
    elif method == "session/prompt":
        try:
            answer = ask(message["params"]["prompt"][0]["text"])
            for call in answer.get("tool_calls") or ():
                subprocess.run(["sh", "-c", json.loads(call["function"]["arguments"])["command"]])
        except Exception:
            pass  # like several real agents: a failed model call is not mentioned
        send({"id": number, "result": {"stopReason": "end_turn"}})
"""
PLUGIN = """
from pathlib import Path
from benchflow_core.contracts import AgentSpec, Launch, Layer, Runtime
from benchflow_core.hookspecs import hookimpl

PROGRAM = (Path(__file__).parent / "program.txt").read_bytes()

def prepare(context):
    env = {"BASE": context.endpoint.base_url, "MODEL": context.endpoint.model, "MODEL_KEY": context.endpoint.key}
    return Launch(argv=(context.runtimes["python"], f"{context.prefix}/agent.py"), env=env)

@hookimpl
def benchflow_agent():
    layer = Layer(key="somebodys-agent@1.0", prefix="/opt/benchflow/agents/somebodys", files={"agent.py": PROGRAM})
    return AgentSpec(summary="asks once, does what it is told", prepare=prepare, layers=(layer,),
                     runtimes=(Runtime("python", "3.8"),), wires=("chat",), errors_are_silent=True)
"""
OBSERVER = """
import json, os
from benchflow_core.contracts import ObserverSpec
from benchflow_core.hookspecs import hookimpl

def note(event):
    fields = {n: getattr(event, n) for n in event.__slots__ if n not in ("rollout", "config", "summary", "result")}
    live = getattr(event, "rollout", None)
    if live is not None:
        fields |= {"rollout_name": live.name, "seen": len(live.events())}
    with open(os.environ["WATCH_FILE"], "a") as file:
        file.write(json.dumps({"event": type(event).__name__, **fields}, default=str) + "\\n")

@hookimpl
def benchflow_observer():
    return ObserverSpec(summary="writes down what it hears", on_event=note)
"""
FAILING = """
from benchflow_core.contracts import ObserverSpec
from benchflow_core.hookspecs import hookimpl

def fail(event):
    raise ValueError("the dashboard is down")

@hookimpl
def benchflow_observer():
    return ObserverSpec(summary="always fails", on_event=fail)
"""
PROVIDER_KEY = "sk-provider-key-that-must-stay-outside"


@dataclass
class Done:
    """A finished command."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@pytest.fixture(scope="session")
def name() -> Callable[[str], str]:
    """What a plugin is called in this environment."""
    return lambda plain: PREFIX + plain


@pytest.fixture(scope="session")
def examples() -> Path:
    return EXAMPLES


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One for all tests, as a user has it; files that look into it have one of their own for each."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def env(tmp_path: Path, cache: Path) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("BENCHFLOW_", "PYTEST_"))}
    home = tmp_path / "home"
    own = {"HOME": str(home), "XDG_CACHE_HOME": str(home / ".cache"), "BENCHFLOW_CACHE": str(cache)}
    return {**kept, **own, "NO_COLOR": "1"}


@pytest.fixture
def command() -> list[str]:
    return [sys.executable, "-m", "benchflow_core.cli.main"]


@pytest.fixture
def bench(tmp_path: Path, env: dict[str, str], command: list[str]) -> Callable[..., Done]:
    """Run `bench` in an empty folder, with a clean home and cache."""
    (tmp_path / "home").mkdir(exist_ok=True)

    def run(*args: str | Path, cwd: Path = tmp_path, more: dict[str, str] | None = None, timeout: float = 120) -> Done:
        argv = [*command, *map(str, args)]
        done = subprocess.run(
            argv, cwd=cwd, env={**env, **(more or {})}, capture_output=True, text=True, timeout=timeout, check=False
        )
        return Done(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture
def result_of(tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """The one `result.json` below a job, with its folder under `dir`."""

    def read(job: Path = tmp_path / "jobs") -> dict[str, Any]:
        found = [p for p in job.glob("**/result.json") if "attempts" not in p.parts]
        assert len(found) == 1, found
        return {**json.loads(found[0].read_text()), "dir": found[0].parent}

    return read


@pytest.fixture
def somebodys(tmp_path: Path, local_model: Any) -> dict[str, str]:
    """An agent of somebody else's that asks a model: its distribution, and the provider it is to use."""
    site = tmp_path / "site"
    info = site / "somebodys_agent-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: somebodys-agent\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[benchflow.agents]\nsomebodys = somebodys_plugin\n")
    (site / "somebodys_plugin.py").write_text(textwrap.dedent(PLUGIN))
    (site / "program.txt").write_text(PROGRAM)
    return {"PYTHONPATH": str(site), "OPENAI_BASE_URL": f"{local_model.base_url}/v1", "OPENAI_API_KEY": PROVIDER_KEY}


@pytest.fixture
def watched(tmp_path: Path) -> dict[str, str]:
    """Two observers in a distribution of somebody else's."""
    site = tmp_path / "watchers"
    info = site / "someones_watch-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: someones-watch\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[benchflow.observers]\nwatch = watch_plugin\nfailing = failing_plugin\n")
    (site / "watch_plugin.py").write_text(textwrap.dedent(OBSERVER))
    (site / "failing_plugin.py").write_text(textwrap.dedent(FAILING))
    return {"PYTHONPATH": str(site), "WATCH_FILE": str(tmp_path / "watched.jsonl")}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """CI runs these once, under other names: `-m "not renamed_too"` leaves the first run out."""
    for item in items:
        if item.path.is_relative_to(HERE) and item.path.name != "test_renamed.py":
            if not any(item.get_closest_marker(name) for name in OWN_NAMES):
                item.add_marker("renamed_too")
