"""`--auth native`: the host's login goes into the box by explicit wish, and is gone before anything is captured."""

from __future__ import annotations

import json
import shutil

import pytest

PROGRAM = r"""
import json, os, subprocess, sys
for line in sys.stdin:
    message = json.loads(line)
    method, number = message.get("method"), message.get("id")
    if method == "session/prompt":
        look = "stat -c %a-%U ~/.somebody/login.json; cat ~/.somebody/login.json; echo $MODEL_ENDPOINT"
        subprocess.run(f"({look}) > /logs/artifacts/seen.txt", shell=True)
    answer = {"initialize": {"protocolVersion": 1}, "session/new": {"sessionId": "s"},
              "session/prompt": {"stopReason": "end_turn"}}.get(method, {})
    print(json.dumps({"jsonrpc": "2.0", "id": number, "result": answer}), flush=True)
"""
PLUGIN = f"""
from benchflow_core.contracts import AgentSpec, AuthOption, Launch, Layer, Runtime
from benchflow_core.hookspecs import hookimpl

def prepare(context):
    env = {{"MODEL_ENDPOINT": "gateway" if context.endpoint else f"none-{{context.auth.name}}"}}
    return Launch(argv=(context.runtimes["python"], f"{{context.prefix}}/agent.py"), env=env)

@hookimpl
def benchflow_agent():
    layer = Layer(key="somebodys-agent@1.0", prefix="/opt/benchflow/agents/somebodys",
                  files={{"agent.py": {PROGRAM.encode()!r}}})
    login = AuthOption("host-login", files={{"~/.somebody/login.json": ".somebody/login.json"}}, native=True)
    return AgentSpec(summary="looks at its login", prepare=prepare, layers=(layer,),
                     runtimes=(Runtime("python", "3.8"),), wires=("chat",), auth=(login,))
"""
TOKEN = "token-of-the-host-5f0c2b91"
TESTS = "#!/bin/sh\n[ ! -e /root/.somebody/login.json ] && echo 1 > /logs/verifier/reward.txt || echo 0 > /logs/verifier/reward.txt\n"


@pytest.fixture
def somebodys(tmp_path):
    site = tmp_path / "site"
    info = site / "somebodys_agent-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: somebodys-agent\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[benchflow.agents]\nsomebodys = somebodys_plugin\n")
    (site / "somebodys_plugin.py").write_text(PLUGIN)
    return {"PYTHONPATH": str(site)}


@pytest.fixture
def task(examples, tmp_path):
    """Passed where the verifier does not find the login."""
    copy = shutil.copytree(examples / "hello-file", tmp_path / "task")
    (copy / "tests" / "test.sh").write_text(TESTS)
    return copy


def test_a_login_is_used_marked_and_taken_out_again(bench, somebodys, task, tmp_path, result_of):
    login = tmp_path / "home" / ".somebody" / "login.json"
    login.parent.mkdir(parents=True)
    login.write_text(json.dumps({"tokens": [{"refresh": TOKEN}]}))
    done = bench("eval", "create", "-t", task, "-a", "somebodys", "--auth", "native", more=somebodys)
    assert done.code == 0, done.err
    result = result_of()
    assert result["rewards"] == {"reward": 1.0}, "the verifier found the login in the box"
    assert "native-auth" in result["flags"] and any("no gateway" in notice for notice in result["notices"])
    assert "gateway" not in {plugin["kind"] for plugin in result["plugins"]}
    seen = (result["dir"] / "artifacts/logs/artifacts/seen.txt").read_text()
    assert seen.startswith("600-root\n") and "[redacted]" in seen and "none-host-login" in seen
    written = b"".join(p.read_bytes() for p in result["dir"].rglob("*") if p.is_file())
    assert TOKEN.encode() not in written
    assert json.loads((result["dir"] / "config.json").read_text())["auth"] == "native"


def test_what_is_missing_is_said_before_anything_starts(bench, name, somebodys, task, tmp_path):
    none = bench("eval", "create", "-t", task, "-a", "somebodys", "--auth", "native", more=somebodys)
    assert none.code == 1 and "~/.somebody/login.json" in none.err and not (tmp_path / "jobs").exists()
    login = tmp_path / "home" / ".somebody" / "login.json"
    login.parent.mkdir(parents=True)
    login.write_text("{}")
    required = ("--auth", "native", "--usage-tracking", "required")
    counted = bench("eval", "create", "-t", task, "-a", "somebodys", *required, more=somebodys)
    assert counted.code == 1 and "nobody counts tokens" in counted.err


def test_a_token_for_the_native_way_is_never_taken_for_a_key(examples):
    """Claude's subscription token at the provider's API would only be refused, a fleet later."""
    from benchflow_core.errors import ConfigurationError
    from benchflow_core.plugins import registry
    from benchflow_core.rollout import RolloutConfig
    from benchflow_core.rollout.plan import make_plan

    native = next(a for a in registry().all("agent") if any(o.native and o.env for o in a.spec.auth))
    [option] = [o for o in native.spec.auth if o.native and o.env]
    config = RolloutConfig(examples / "hello-file", agent=native.name, model="anthropic/some-model")
    with pytest.raises(ConfigurationError, match="no credential for provider"):
        make_plan(config, registry(), dict.fromkeys(option.env, "a-subscription-token"))
    config = config.model_copy(update={"auth": "native"})
    assert make_plan(config, registry(), dict.fromkeys(option.env, "a-subscription-token")).gateways == ()
