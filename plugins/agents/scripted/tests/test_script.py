"""Scripts: what is accepted, what is refused and in which words, and what becomes of it in a launch."""

from __future__ import annotations

import ast
import contextlib
import json
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from benchflow_agent_scripted.plugin import benchflow_agent, prepare
from benchflow_agent_scripted.script import chosen_script, load_script

from benchflow_core.contracts import AgentContext
from benchflow_core.errors import ConfigurationError

CONTEXT = AgentContext(
    workdir="/app", home="/root", user="root", prefix="/opt/x", runtimes={"python": "/usr/bin/python3"}
)
PROGRAM = Path(benchflow_agent.__code__.co_filename).with_name("program")


def test_short_and_long_forms_are_the_same() -> None:
    short = load_script("- say: hi\n- hang\n", "s")
    long = load_script("turns:\n- steps:\n  - say: hi\n  - hang: true\n", "s")
    assert short == long
    assert short["turns"] == [{"match": None, "steps": [{"do": "say", "say": "hi"}, {"do": "hang", "hang": True}]}]


MISTAKES = {
    "- say: hi\n- runn: ls\n": "s.yaml:2: unknown step 'runn'; did you mean 'run'?",
    "- say: hi\n\n- run: ls\n  timout: 5\n": "s.yaml:4: unknown key 'timout'; did you mean 'timeout'?",
    "- say: 5\n": "s.yaml:1: 'say' wants text (in quotes if it looks like something else)",
    "- say: hi\n  run: ls\n": "s.yaml:2: 'say' and 'run' are two steps: start a new one with '-'",
    "- tool: {name: x}\n": "s.yaml:1: 'tool' wants text",
    "- write: {path: x}\n": "s.yaml:1: 'write' lacks 'content'",
    "- write:\n    path: x\n    content: 1\n": "s.yaml:1: 'write' → 'content' wants text",
    "- wait: -1\n": "s.yaml:1: 'wait' wants a number of seconds",
    "- wait: .inf\n": "s.yaml:1: 'wait' wants a number of seconds",
    "- crash: 300\n": "s.yaml:1: 'crash' wants an exit code 0 to 255",
    "- crash: yes\n": "s.yaml:1: 'crash' wants an exit code",
    "- flood: {text: x}\n": "s.yaml:1: 'flood' lacks 'count'",
    "- garbage: {base64: '?'}\n": "s.yaml:1: 'garbage' → 'base64' wants base64",
    "- run: ls\n  permission: {options: [{optionId: a}]}\n": "s.yaml:2: 'permission' → 'options' wants",
    "turns:\n- match: '('\n  steps: []\n": "s.yaml:2: 'match' is not a regular expression",
    "turn: []\n": "s.yaml:1: unknown key 'turn'; did you mean 'turns'?",
    "turns:\n- 5\n": "s.yaml:2: expected a list of steps, or a mapping with 'steps'",
    "turns: 5\n": "s.yaml:1: 'turns' wants a list",
    "just text": "s.yaml:1: expected a list of steps, or a mapping with 'turns'",
    "": "s.yaml:1: expected a list of steps, or a mapping with 'turns'",
    "- just text\n": "s.yaml:1: a step is a mapping such as 'say: hello'",
    "- {}\n": "s.yaml:1: unknown step ''; known: background, call,",
    "- say: [\n": "s.yaml:2: not YAML: ",
    "- say: 'a\n": "s.yaml:2: not YAML: ",
    "- say: \x00\n": "s.yaml: not YAML: ",
    "- say: a\n  say: b\n": "s.yaml:2: the key 'say' is given twice",
    "- 1: a\n": "s.yaml:1: the key 1 is not text; put it in quotes",
    "- say: !!python/object/apply:os.system ['true']\n": "s.yaml:1: ",
    "a: 1\n---\nb: 2\n": "s.yaml:2: not YAML: ",
}


@pytest.mark.parametrize("text", MISTAKES)
def test_a_mistake_is_one_line_with_file_line_and_suggestion(text: str) -> None:
    with pytest.raises(ConfigurationError) as wrong:
        load_script(text, "s.yaml")
    assert str(wrong.value).startswith(MISTAKES[text]), str(wrong.value)
    assert "\n" not in str(wrong.value)


def test_aliases_cannot_blow_up() -> None:
    layers = "".join(f"  b{n}: &b{n} [{', '.join([f'*b{n - 1}'] * 10)}]\n" for n in range(1, 9))
    with pytest.raises(ConfigurationError, match="more than 20000 values"):
        load_script(f"- update:\n  b0: &b0 [x]\n{layers}".replace("\n  b", "\n    b"), "s")


def test_where_the_script_comes_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "a.yaml"
    file.write_text("- say: from a file\n")

    def first(options: dict[str, str], env: dict[str, str]) -> str:
        said: str = chosen_script(options, env)["turns"][0]["steps"][0]["say"]
        return said

    assert first({"script": str(file)}, {"BENCHFLOW_SCRIPT": "- say: env"}) == "from a file"
    assert first({"script": "- say: inline"}, {}) == "inline"
    assert first({"script": "[{say: flow}]"}, {}) == "flow"
    assert first({}, {"BENCHFLOW_SCRIPT": "- say: agent env"}) == "agent env"
    monkeypatch.setenv("BENCHFLOW_SCRIPT", "- say: host env")
    assert first({}, {}) == "host env"
    monkeypatch.delenv("BENCHFLOW_SCRIPT")
    with pytest.raises(ConfigurationError, match="no script was given"):
        first({}, {})


@pytest.mark.parametrize("content", [None, b"\xff\xfe"])
def test_a_script_that_cannot_be_read(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "a.yaml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigurationError, match=r"cannot read the script .*a\.yaml: (No such file|it is not UTF-8)"):
        chosen_script({"script": str(path)}, {})


def test_the_launch_carries_the_script_as_a_file() -> None:
    launch = prepare(replace(CONTEXT, options={"script": "- say: hi"}, model="lab/m", role="judge"))
    ((path, content),) = launch.files.items()
    assert path.startswith("/root/.benchflow-scripted-") and launch.argv[-1] == path
    assert launch.argv[0] == "/usr/bin/python3" and launch.argv[-2] == "/opt/x/agent.py"
    data = json.loads(content)
    assert (data["model"], data["role"], data["turns"][0]["steps"][0]["say"]) == ("lab/m", "judge", "hi")
    other = prepare(replace(CONTEXT, options={"script": "- say: hi"}, role="other"))
    assert set(other.files) != set(launch.files)


def test_the_layer_is_the_program_and_its_key_follows_its_content() -> None:
    (layer,) = benchflow_agent().layers
    assert set(layer.files) == {path.name for path in PROGRAM.glob("*.py")}
    assert layer.key.startswith("benchflow-scripted@1+") and layer == benchflow_agent().layers[0]


def test_the_program_is_python_3_8_and_standard_library_only() -> None:
    for path in PROGRAM.glob("*.py"):
        tree = ast.parse(path.read_text(), feature_version=(3, 8))
        names = {
            name.split(".")[0]
            for node in ast.walk(tree)
            for name in (
                [a.name for a in node.names]
                if isinstance(node, ast.Import)
                else [node.module or ""]
                if isinstance(node, ast.ImportFrom)
                else []
            )
        }
        allowed = "__future__ base64 collections http json mcp_call os re shlex signal subprocess sys threading time turn typing urllib"
        assert names <= set(allowed.split())


def find_python(version: str) -> str | None:
    """On the PATH, or among pyenv's, whose own launchers only work where a version is chosen."""
    others = sorted((Path.home() / ".pyenv" / "versions").glob(f"{version}.*/bin/python"))
    for found in (shutil.which(f"python{version}"), *map(str, others)):
        if found and subprocess.run([found, "-c", ""], capture_output=True).returncode == 0:
            return found
    return None


@pytest.mark.parametrize("version", ["3.8", "3.9", "3.12"])
def test_the_program_runs_on_other_versions(tmp_path: Path, version: str) -> None:
    python = find_python(version)
    if python is None:
        pytest.skip(f"no Python {version} here")
    script = load_script("- run: echo hi\n- write: {path: f, content: x}\n- read: f\n- say: '{{last}}'", "s")
    (tmp_path / "s.json").write_text(json.dumps({**script, "version": "1"}))
    requests = [
        {"id": 1, "method": "initialize", "params": {}},
        {"id": 2, "method": "session/new", "params": {"cwd": str(tmp_path)}},
        {"id": 3, "method": "session/prompt", "params": {"prompt": [{"type": "text", "text": "go"}]}},
    ]
    argv = [python, "-B", "-E", "-s", "-S", str(PROGRAM / "agent.py"), str(tmp_path / "s.json")]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin and process.stdout
        process.stdin.write("".join(json.dumps(r) + "\n" for r in requests).encode())
        process.stdin.flush()
        messages = []
        while not messages or messages[-1].get("id") != 3:
            messages.append(json.loads(process.stdout.readline()))
        process.stdin.close()
        assert process.wait(10) == 0
    assert messages[-1]["result"] == {"stopReason": "end_turn"}
    assert messages[-2]["params"]["update"]["content"]["text"] == "x"


SERVER = """
import sys
import uvicorn
from mcp.server.mcpserver import MCPServer

server = MCPServer("sums", log_level="ERROR")

@server.tool()
def add(a: int, b: int) -> str:
    if a < 0:
        raise ValueError("no negative numbers")
    return f"the sum is {a + b}"

uvicorn.run(server.streamable_http_app(), port=int(sys.argv[1]), log_level="critical")
"""


@pytest.fixture
def mcp_url() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with subprocess.Popen([sys.executable, "-c", SERVER, str(port)]) as process:
        try:
            for _ in range(600):
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                    break
                time.sleep(0.1)
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            process.terminate()


def test_a_tool_of_a_real_mcp_server_is_called_with_the_standard_library_alone(mcp_url: str) -> None:
    calls = [
        {"tool": "add", "input": {"a": 1, "b": 2}},
        {"tool": "add", "input": {"a": -1, "b": 2}, "server": "sums"},
        {"tool": "subtract"},
    ]
    program = (
        "import json, sys; sys.path.insert(0, sys.argv[1]); from mcp_call import call_tool\n"
        "for step in json.loads(sys.argv[3]):\n"
        "    try: print(json.dumps(call_tool([{'type': 'http', 'name': 'sums', 'url': sys.argv[2]}], step)[:2]))\n"
        "    except OSError as error: print(json.dumps(str(error)))\n"
    )
    argv = [sys.executable, "-E", "-s", "-S", "-c", program, PROGRAM, mcp_url, json.dumps(calls)]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    good, bad, missing = map(json.loads, done.stdout.splitlines())
    assert good == [True, "the sum is 3"]
    assert not bad[0] and "Error executing tool add" in bad[1]
    assert missing == "no MCP server over HTTP has the tool subtract"
