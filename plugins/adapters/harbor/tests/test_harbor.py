"""Harbor's task.toml, field by field: types, defaults, deprecated spellings, conflicts."""

from __future__ import annotations

import pytest

from benchflow_core.contracts.common import McpServer
from benchflow_core.contracts.sandboxes import NetworkPolicy, Resources
from benchflow_core.contracts.tasks import Artifact, CollectHook, Healthcheck
from benchflow_core.errors import TaskError


def test_defaults(harbor) -> None:
    task = harbor()
    assert task.agent_timeout is None and task.agent_user is None and task.agent_network is None
    assert task.environment.resources == Resources()
    assert task.environment.network == NetworkPolicy()
    assert (task.environment.build_timeout, task.environment.os) == (600.0, "linux")
    assert (task.verifier.timeout, task.verifier.isolation, task.verifier.tests_target) == (600.0, None, "/tests")
    assert (task.dialect.name, task.solution, task.steps, task.artifacts) == ("harbor", None, (), ())
    assert task.locked_paths == ("/solution", "/tests")


def test_everything_at_once(harbor) -> None:
    task = harbor(
        """
schema_version = "1.4"
source = "somewhere"
artifacts = ["/app/out", {source = "/var/log/x", destination = "logs/x", exclude = ["*.tmp"], service = "db"}]

[task]
name = "org/name.x"
version = "2"
description = "d"
authors = [{name = "A", email = "a@b"}, {name = "B"}]
keywords = ["k"]

[metadata]
day = 2024-02-03
free = {a = [1, inf]}

[agent]
timeout_sec = "90"
user = 1000
network_mode = "allowlist"
allowed_hosts = ["API.Example.com.", "*.x.org", "10.0.0.0/8", "2001:DB8::1"]

[verifier]
timeout_sec = 30
user = "tester"
network_mode = "no-network"
env = {A = "${A}"}
[[verifier.collect]]
command = "dump"
service = "db"
timeout_sec = 5
user = "postgres"

[environment]
build_timeout_sec = 120
docker_image = "img:1"
os = "Linux"
cpus = 2.0
memory_mb = "512"
storage_mb = 100
gpus = 1
gpu_types = ["H100"]
skills_dir = "/skills"
workdir = "/work"
env = {B = "c"}
tpu = {type = "v6e", topology = " 2x4 "}
[environment.healthcheck]
command = "true"
interval_sec = 1
retries = 9
[[environment.mcp_servers]]
name = "a"
transport = "http"
url = "http://x"
[[environment.mcp_servers]]
name = "b"
transport = "stdio"
command = "run"
args = ["-x"]

[solution]
env = {S = "1"}
""",
        **{"solution/solve.sh": "#!/bin/sh\n"},
    )
    assert (task.name, task.version, task.description, task.keywords) == ("org/name.x", "2", "d", ("k",))
    assert task.metadata["day"] == "2024-02-03" and task.metadata["free"] == {"a": [1, "inf"]}
    assert task.metadata["authors"][1] == {"name": "B", "email": None} and task.metadata["source"] == "somewhere"
    assert (task.agent_timeout, task.agent_user) == (90.0, "1000")
    hosts = ("api.example.com", "*.x.org", "10.0.0.0/8", "2001:db8::1")
    assert task.agent_network == NetworkPolicy("allowlist", hosts)
    assert (task.verifier.timeout, task.verifier.user, task.verifier.env) == (30.0, "tester", {"A": "${A}"})
    assert task.verifier.network == NetworkPolicy("none")
    assert task.verifier.collect == (CollectHook("dump", "db", 5.0, "postgres"),)
    box = task.environment
    assert box.resources == Resources(2, 512, 100, None, 1, ("H100",), {"type": "v6e", "topology": "2x4"})
    assert (box.image, box.build_timeout, box.workdir, box.skills_dir) == ("img:1", 120.0, "/work", "/skills")
    assert box.healthcheck == Healthcheck("true", 1.0, 30.0, 0.0, 5.0, 9)
    assert box.mcp_servers == (
        McpServer("a", "http", "http://x"),
        McpServer("b", "stdio", command="run", args=("-x",)),
    )
    assert task.solution and task.solution.env == {"S": "1"}
    assert task.artifacts[1] == Artifact("/var/log/x", "logs/x", ("*.tmp",), "db")
    assert task.notices == ()


GOOD = {
    "memory as text": ('[environment]\nmemory = "2G"\n', lambda t: t.environment.resources.memory_mb == 2048),
    "storage in K": ('[environment]\nstorage = "4096k"\n', lambda t: t.environment.resources.storage_mb == 4),
    "half a gigabyte": ('[environment]\nmemory = "0.5G"\n', lambda t: t.environment.resources.memory_mb == 512),
    "both, and equal": (
        '[environment]\nmemory = "1G"\nmemory_mb = 1024\n',
        lambda t: t.environment.resources.memory_mb == 1024,
    ),
    "memory as a number is dropped": (
        "[environment]\nmemory = 2048\n",
        lambda t: t.environment.resources.memory_mb is None and "is ignored" in t.notices[0],
    ),
    "no internet": ("[environment]\nallow_internet = false\n", lambda t: t.environment.network.mode == "none"),
    "internet": ("[environment]\nallow_internet = true\n", lambda t: t.environment.network.mode == "public"),
    "network_mode overrules": (
        '[environment]\nallow_internet = false\nnetwork_mode = "public"\n',
        lambda t: t.environment.network.mode == "public",
    ),
    "allowlist without hosts": (
        '[environment]\nnetwork_mode = "allowlist"\n',
        lambda t: t.environment.network.mode == "allowlist",
    ),
    "empty hosts and no mode": (
        "[environment]\nallowed_hosts = []\n",
        lambda t: t.environment.network.mode == "public",
    ),
    "negative cpus": ("[environment]\ncpus = -1\n", lambda t: t.environment.resources.cpus == -1),
    "infinite time": ("[agent]\ntimeout_sec = inf\n", lambda t: t.agent_timeout == 1e9),
    "no time": ("[agent]\ntimeout_sec = 0\n", lambda t: t.agent_timeout == 0 and "no time at all" in t.notices[0]),
    "old version key": ('version = "0.9"\n', lambda t: t.notices == ()),
    "empty steps": ("steps = []\n", lambda t: t.steps == ()),
    "shared said aloud": ('[verifier]\nenvironment_mode = "shared"\n', lambda t: t.verifier.isolation is None),
    "empty destination": (
        'artifacts = [{source = "/x", destination = ""}]\n',
        lambda t: t.artifacts[0].destination is None,
    ),
}


@pytest.mark.parametrize("case", GOOD)
def test_taken(harbor, case: str) -> None:
    config, holds = GOOD[case]
    assert holds(harbor(config))


BAD = {
    "2GB": ('[environment]\n\nmemory = "2GB"\n', 3, "must be a size like"),
    "2048 as text": ('[environment]\nmemory = "2048"\n', 2, "must be a size like"),
    "sizes that differ": ('[environment]\nmemory_mb = 1\nmemory = "1G"\n', 3, "contradicts memory_mb = 1"),
    "half a cpu": ("[environment]\ncpus = 0.5\n", 2, "must be a whole number, got 0.5"),
    "env that is no text": ('[environment.env]\nA = "x"\nB = 1\n', 3, "environment.env.B must be text in quotes"),
    "version as a number": ("version = 1.0\n", 1, "version must be text in quotes"),
    "name without org": ('[task]\nname = "x"\n', 2, "task.name must be 'org/name'"),
    "name with dots": ('[task]\nname = "a/b..c"\n', 2, "task.name must be 'org/name'"),
    "no name": ('[task]\nversion = "1"\n', 1, "task.name is missing"),
    "unknown os": ('[environment]\nos = "mac"\n', 2, "must be linux or windows"),
    "hosts and public": ('[agent]\nnetwork_mode = "public"\nallowed_hosts = ["a.b"]\n', 3, "only valid with"),
    "hosts and no mode": ("[agent]\nallowed_hosts = []\n", 2, "only valid with"),
    "a URL as host": (
        '[agent]\nnetwork_mode = "allowlist"\nallowed_hosts = [\n  "a.b",\n  "http://x",\n]\n',
        5,
        "a host name",
    ),
    "a port": ('[agent]\nnetwork_mode = "allowlist"\nallowed_hosts = ["a.b:80"]\n', 3, "a host name"),
    "star in the middle": ('[agent]\nnetwork_mode = "allowlist"\nallowed_hosts = ["a.*.b"]\n', 3, "a host name"),
    "star on an address": ('[agent]\nnetwork_mode = "allowlist"\nallowed_hosts = ["*.1.2.3.4"]\n', 3, "not an address"),
    "host bits set": ('[agent]\nnetwork_mode = "allowlist"\nallowed_hosts = ["10.0.0.1/8"]\n', 3, "a host name"),
    "shared with a box": (
        '[verifier]\nenvironment_mode = "shared"\n[verifier.environment]\ncpus = 1\n',
        2,
        "contradicts the environment of its own",
    ),
    "mcp without url": ('[[environment.mcp_servers]]\nname = "x"\n', 1, "url is required for transport 'sse'"),
    "mcp without command": (
        '[[environment.mcp_servers]]\nname = "x"\ntransport = "stdio"\n',
        1,
        "command is required for transport 'stdio'",
    ),
    "topology": ('[environment.tpu]\ntype = "v4"\ntopology = "2"\n', 3, "dimensions like"),
    "healthcheck without command": ("[environment.healthcheck]\nretries = 1\n", 1, "command is missing"),
    "artifact up": ('artifacts = ["/a/../b"]\n', 1, "a path without '..'"),
    "absolute destination": ('artifacts = [{source = "a", destination = "/b"}]\n', 1, "a relative path"),
    "backslashes": ("artifacts = [{source = 'a', destination = 'b\\c'}]\n", 1, "a relative path"),
    "manifest": ('artifacts = [{source = "a", destination = "manifest.json"}]\n', 1, "manifest.json"),
    "relative in a sidecar": ('artifacts = [{source = "a", service = "db"}]\n', 1, "must be an absolute path"),
    "service name": ('[[verifier.collect]]\ncommand = "x"\nservice = "-"\n', 3, "the name of a compose service"),
    "not a number": ("[agent]\ntimeout_sec = nan\n", 2, "must be a number of seconds"),
    "strategy": ('multi_step_reward_strategy = "best"\n', 1, "must be mean or final"),
    "a table that is none": ("environment = 5\n", 1, "environment must be a table, got 5"),
    "our own key misspelt": ("[metadata.benchflow]\nallow_substitutes = true\n", 2, "unknown key"),
    "our own value": ('[metadata.benchflow]\nisolation = "none"\n', 2, "must be fresh or shared or separate"),
}


@pytest.mark.parametrize("case", BAD)
def test_refused_with_its_line(harbor, case: str) -> None:
    config, line, message = BAD[case]
    with pytest.raises(TaskError) as caught:
        harbor(config)
    assert message in caught.value.message
    assert caught.value.details["line"] == line
    assert f"task.toml:{line}: " in caught.value.message


def test_unknown_keys_are_noticed_with_the_nearest_known(harbor) -> None:
    task = harbor(
        '[environment]\nmemmory_mb = 5\n[[steps]]\nname = "a"\n[steps.agent]\ntimeout = 5\n',
        **{"steps/a/instruction.md": "x"},
    )
    first, second = [notice.split("task.toml:")[1] for notice in task.notices if "unknown key" in notice]
    assert first == "2: unknown key 'environment.memmory_mb' is ignored (nearest: 'memory_mb')"
    assert second.startswith("6: unknown key 'steps[0].agent.timeout' is ignored (nearest: 'timeout_sec')")


def test_deprecated_keys_are_noticed(harbor) -> None:
    notices = harbor('[environment]\nmemory = "2G"\nallow_internet = true\n').notices
    assert [n.split(": ", 1)[1] for n in notices] == [
        "'environment.memory' is deprecated: write memory_mb = 2048",
        "'environment.allow_internet' is deprecated: write network_mode = \"public\"",
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain\n", "plain\n"),
        ("<!-- x CANARY y -->\n\n\nDo.\n", "Do.\n"),
        ("# canary 1\n  <!-- canary 2 -->\nDo.\n", "Do.\n"),
        ("\n\nDo.\n", "Do.\n"),
        ("Do.\n# canary\n", "Do.\n# canary\n"),
        ("<!-- canary\n-->\nDo.\n", "<!-- canary\n-->\nDo.\n"),
        ("# canary\n", ""),
    ],
)
def test_canaries_are_stripped(harbor, text: str, expected: str) -> None:
    assert harbor(**{"instruction.md": text}).instruction == expected


def test_a_prebuilt_image_alone_brings_its_folder_along(harbor) -> None:
    image = '[environment]\ndocker_image = "x"\n'
    assert harbor(image, **{"environment/Dockerfile": None, "environment/data": "1"}).environment.upload_context


def test_a_prebuilt_image_with_a_dockerfile_does_not(harbor) -> None:
    assert not harbor('[environment]\ndocker_image = "x"\n').environment.upload_context


def test_compose_files(harbor) -> None:
    task = harbor(**{"environment/docker-compose.yml": "x"})
    assert task.environment.compose is None and "must be docker-compose.yaml" in task.notices[0]
    task = harbor(**{"environment/docker-compose.yaml": "x"})
    assert task.environment.compose and task.environment.compose.name == "docker-compose.yaml"


def test_windows_scripts(harbor) -> None:
    task = harbor('[environment]\nos = "WINDOWS"\n', **{"tests/test.bat": "x", "solution/solve.bat": "x"})
    assert (task.verifier.script, task.solution.script, task.environment.os) == ("test.bat", "solve.bat", "windows")


def test_windows_does_not_take_the_other_script(harbor) -> None:
    with pytest.raises(TaskError, match=r"test\.bat: does not exist"):
        harbor('[environment]\nos = "windows"\n')


def test_a_prior_conversation_is_told(harbor) -> None:
    assert harbor().prior_conversation is None
    assert harbor(**{"trajectory.json": "{}"}).prior_conversation.name == "trajectory.json"


def test_options_of_ours(harbor) -> None:
    config = '[metadata.benchflow]\nallow_substitute = true\nisolation = "shared"\nkeep_changes = ["/usr/bin/git"]\n'
    task = harbor(config)
    assert task.environment.allow_substitute
    assert (task.verifier.isolation, task.verifier.keep_changes) == ("shared", ("/usr/bin/git",))


def test_benchflow_words_in_a_task_toml(harbor) -> None:
    config = """
[agent]
prompt_prefix = "Be kind."
[verifier]
type = "llm-judge"
reward_range = [-1, 1]
service = "db"
[verifier.judge]
model = "m"
[environment]
setup_commands = [{command = "seed", cwd = "/x", timeout_sec = 5}]
"""
    task = harbor(config)
    assert (task.verifier.method, task.verifier.service, task.dialect.name) == ("llm-judge", "db", "benchflow")
    assert task.verifier.params["model"] == "m" and task.verifier.params["rubric_path"] == "tests/rubric.toml"
    assert task.prompt_prefix == "Be kind." and task.environment.setup[0].command == "seed"


def test_a_word_that_only_looks_like_benchflows_does_not_stop_a_harbor_task(harbor) -> None:
    """Harbor ignores the key whatever it holds."""
    task = harbor('[verifier]\ntype = "pytest"\n')
    assert (task.verifier.method, task.dialect.name) == ("test-script", "harbor")
    assert "verifier.type must be" in task.notices[0] and "the key is ignored" in task.notices[0]


def test_a_task_never_writes_to_the_host(harbor) -> None:
    config = '[environment]\nsetup_commands = [{command = "x", capture_dir = "/a", capture_dir_b64_env = "B"}]\n'
    assert any("not supported" in notice for notice in harbor(config).notices)
    assert harbor(config).environment.setup == ()
