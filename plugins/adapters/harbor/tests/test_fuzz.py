"""Whatever stands in a config: it loads, or it is a `TaskError`."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pytest
import tomli_w
import yaml
from benchflow_adapter_harbor.aggregate import RewardProblem
from benchflow_adapter_harbor.harbor_load import load_harbor
from benchflow_adapter_harbor.rewards import BenchFlowDialect, HarborDialect
from benchflow_adapter_harbor.taskmd_load import load_taskmd
from benchflow_adapter_harbor.tomlfile import line_in_toml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchflow_core.contracts.tasks import RewardFiles
from benchflow_core.errors import RewardInvalid, RewardMissing, TaskError

WORDS = [
    "",
    "a",
    "x/y",
    "2G",
    "public",
    "allowlist",
    "no-network",
    "linux",
    "windows",
    "separate",
    "shared",
    "mean",
    "${A}",
]
scalars = (
    st.sampled_from(WORDS)
    | st.text(st.characters(codec="utf-8", exclude_characters="\x00\r"), max_size=8)
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats()
    | st.booleans()
    | st.dates(datetime.date(1900, 1, 1))
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from([*WORDS[1:], "name", "command"]), inner, max_size=3)
    ),
    max_leaves=6,
)
TABLES = ["agent", "verifier", "environment", "solution", "task", "sandbox", "oracle"]
KEYS = """
agent agents allow_internet allowed_hosts artifacts authors benchflow collect cpus docker_image env environment
environment_mode healthcheck image isolation judge keywords mcp_servers memory memory_mb metadata min_reward
multi_step_reward_strategy name network_mode os oracle profile reward reward_range roles sandbox scenes schema_version
service setup_commands solution source steps storage task timeout_sec tpu turns type user verifier version
""".split()
configs = st.dictionaries(st.sampled_from(KEYS), values, max_size=4)
documents = st.builds(
    lambda tables, rest, steps: {**rest, **tables, **({"steps": steps} if steps else {})},
    st.dictionaries(st.sampled_from(TABLES), configs, max_size=3),
    configs,
    st.lists(
        st.fixed_dictionaries(
            {"name": st.sampled_from(["a", "b"]) | values}, optional={"verifier": configs, "agent": configs}
        ),
        max_size=2,
    ),
)
FUZZ = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    names = [
        "instruction.md",
        "environment/Dockerfile",
        "tests/test.sh",
        "steps/a/instruction.md",
        "steps/b/instruction.md",
    ]
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("#!/bin/sh\n")
    return tmp_path


@FUZZ
@given(documents)
def test_any_toml(folder: Path, data: dict[str, Any]) -> None:
    text = tomli_w.dumps(data)
    (folder / "task.toml").write_text(text)
    try:
        task = load_harbor(folder)
    except TaskError as error:
        assert error.details["line"] is None or 1 <= error.details["line"] <= text.count("\n") + 1
    else:
        assert task.path == folder


@FUZZ
@given(documents, st.text(st.sampled_from("#: \nprompt-role\\xé"), max_size=60))
def test_any_frontmatter(folder: Path, data: dict[str, Any], body: str) -> None:
    text = "---\n" + yaml.safe_dump(data, allow_unicode=True) + "---\n" + body
    (folder / "task.md").write_text(text)
    try:
        load_taskmd(folder)
    except TaskError as error:
        assert error.details.get("line") is None or 1 <= error.details["line"] <= text.count("\n") + 1


@FUZZ
@given(st.binary(max_size=80) | st.text(st.sampled_from("[]{}=\"',.#\nab1- "), max_size=60).map(str.encode))
def test_any_bytes(folder: Path, data: bytes) -> None:
    for name, load in (("task.toml", load_harbor), ("task.md", load_taskmd)):
        (folder / name).write_bytes(b"---\n" + data + b"\n---\n" if name == "task.md" and data[:1] != b"-" else data)
        try:
            load(folder)
        except TaskError:
            pass


@FUZZ
@given(documents)
def test_every_key_has_a_line(data: dict[str, Any]) -> None:
    """The line finder agrees with the parser about what is there."""
    text = tomli_w.dumps(data)
    lines = text.split("\n")
    for key in data:
        line = line_in_toml(text, (key,))
        assert line is not None
        assert key in lines[line - 1]


@FUZZ
@given(
    st.binary(max_size=40) | values.map(lambda v: yaml.safe_dump(v, default_flow_style=True).encode()),
    st.binary(max_size=10) | st.floats().map(lambda f: str(f).encode()),
)
def test_any_reward(data: bytes, text: bytes) -> None:
    for dialect in (HarborDialect(), BenchFlowDialect(), BenchFlowDialect(lenient=True, policy=(("method", "mean"),))):
        for files in ({"reward.json": data}, {"reward.txt": text}, {"reward.json": data, "reward.txt": text}):
            try:
                rewards = dialect.parse(RewardFiles(files, 0))
            except (RewardInvalid, RewardMissing):
                continue
            except RewardProblem:
                pytest.fail("an inner error escaped")
            assert all(float("-inf") < value < float("inf") for value in rewards.values())
