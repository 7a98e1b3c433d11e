"""Agents by manifest: what it says becomes a launch; what is wrong with it is said with the place."""

from __future__ import annotations

import pytest
from benchflow_agent_command.manifest import manifest_agent
from benchflow_layers import NODE

from benchflow_core.contracts import AgentContext, ModelEndpoint
from benchflow_core.errors import ConfigurationError

WHOLE = """
name = "my-agent"
version = "1.4.2"
launch = ["${node}", "${prefix}/node_modules/my-agent/cli.js", "--cwd", "${workdir}"]
wires = ["chat", "messages"]
requires_env = ["MY_KEY"]

[install]
npm = ["my-agent@1.4.2", "@some/thing@0.1.0-rc.1"]
run = [["sh", "-c", "echo > ${prefix}/made"]]

[env]
OPENAI_BASE_URL = "${base_url}/v1"
OPENAI_API_KEY = "${key}"

[files]
"~/.my-agent.json" = '''{"model": "${model}"}'''
"""


def write(tmp_path, text):
    path = tmp_path / "agent.toml"
    path.write_text(text)
    return str(path)


def test_a_manifest_becomes_a_launch(tmp_path):
    spec = manifest_agent(write(tmp_path, WHOLE))
    assert (spec.version, spec.wires, spec.auth[0].env) == ("1.4.2", ("chat", "messages"), ("MY_KEY",))
    assert [layer.key.rpartition("@")[2] for layer in spec.layers] == ["24.19.0", "0.1.0-rc.1", "1.4.2"]
    assert spec.layers[1].install[0][-2:] == ("my-agent@1.4.2", "@some/thing@0.1.0-rc.1")
    assert spec.layers[2].install == (("sh", "-c", "echo > {prefix}/made"),)
    endpoint = ModelEndpoint("http://127.0.0.1:5", "sk-rollout", "chat", "gpt")
    launch = spec.prepare(AgentContext("/app", "/root", "root", None, model="openai/gpt", endpoint=endpoint))
    prefix = "/opt/benchflow/agents/my-agent"
    assert launch.argv == (NODE, f"{prefix}/node_modules/my-agent/cli.js", "--cwd", "/app")
    assert launch.env == {"OPENAI_BASE_URL": "http://127.0.0.1:5/v1", "OPENAI_API_KEY": "sk-rollout"}
    assert launch.files == {"/root/.my-agent.json": b'{"model": "gpt"}'}


def test_a_lock_beside_it_pins_what_the_packages_depend_on(tmp_path):
    manifest = write(tmp_path, WHOLE.replace("[install]", '[install]\nlock = "package-lock.json"'))
    with pytest.raises(ConfigurationError, match=r"package-lock\.json cannot be read"):
        manifest_agent(manifest)
    (tmp_path / "package-lock.json").write_text("[]")
    with pytest.raises(ConfigurationError, match="is not a lock of npm"):
        manifest_agent(manifest)
    (tmp_path / "package-lock.json").write_text('{"packages": {}}')
    [_, layer, _] = manifest_agent(manifest).layers
    assert layer.files["package-lock.json"] == b'{"packages": {}}' and layer.install[0][2] == "ci"
    (tmp_path / "package-lock.json").write_text('{"packages": {"": {}}}')
    assert manifest_agent(manifest).layers[1].key != layer.key


BASE = 'name = "a"\nversion = "1"\n'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("name = ", "not TOML"),
        ('name = "a"\nversion = "1"\n', "launch: Field required"),
        (BASE + "launch = []\n", "launch"),
        (BASE + 'launch = ["x"]\nlunch = 1\n', "lunch: Extra inputs"),
        (BASE + 'launch = ["x"]\n[install]\nnpm = ["x@latest"]\n', "install.npm.0"),
        (BASE + 'launch = ["x"]\n[install]\nnpm = ["x"]\n', "install.npm.0"),
        (BASE + 'launch = ["x", "${keys}"]\n', "no ${keys}; known: prefix"),
        (BASE + 'launch = ["x", "${key}"]\n', "read a command line"),
        (BASE + 'launch = ["x"]\nwires = ["telepathy"]\n', "wires.0"),
        ('name = "../up"\nversion = "1"\nlaunch = ["x"]\n', "name"),
    ],
)
def test_mistakes_are_said_with_their_place(tmp_path, text, said):
    path = write(tmp_path, text)
    with pytest.raises(ConfigurationError) as error:
        manifest_agent(path)
    assert said in str(error.value) and path in str(error.value) and "\n" not in str(error.value)


def test_a_manifest_that_is_not_there(tmp_path):
    with pytest.raises(ConfigurationError, match="cannot be read"):
        manifest_agent(str(tmp_path / "none.toml"))
