"""Manifests: what they may say, what a mistake is answered with, where they are found, who wins."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchflow_feature_world.find import find_manifest, registered
from benchflow_feature_world.manifest import read_manifest

from benchflow_core.errors import BenchflowError, CapabilityMissing, ConfigurationError
from benchflow_core.plugins import registry

BENCHMARKS = Path(__file__).parents[4] / "benchmarks"
YAML = """environment:
  name: chi-bench
  image: chi-bench:latest
  ports: [8020, 8023, 8100, 8200]
  task_selection: {key: CHI_BENCH_TASK_ID}
  readiness:
    http: ["http://localhost:8023/health"]
  forward_env:
    keys: [ANTHROPIC_API_KEY]
"""
SMALL = '[environment]\nname = "x"\nimage = "i"\n'


def test_the_published_ones_are_understood_whole():
    claws = read_manifest(BENCHMARKS / "clawsbench" / "environment.toml").environment
    assert [(s.name, s.port) for s in claws.services] == [
        ("gmail", 9001), ("slack", 9002), ("gcal", 9003), ("gdoc", 9004), ("gdrive", 9005),
    ]  # fmt: skip
    assert not claws.owns_lifecycle and claws.task_selection.mechanism == "image"
    assert claws.readiness.timeout_sec == 60 and claws.services[0].health_path == "/health"
    chi = read_manifest(BENCHMARKS / "chi-bench").environment
    assert (
        chi.owns_lifecycle and chi.keep_alive and chi.isolation == "per_task" and chi.ports == (8020, 8023, 8100, 8200)
    )
    assert chi.task_selection.inject_into == "entrypoint" and chi.readiness.timeout_sec == 120


def test_the_hash_is_of_what_is_said_not_of_how(tmp_path):
    (tmp_path / "m.yaml").write_text(YAML)
    chi = read_manifest(BENCHMARKS / "chi-bench" / "environment.toml")
    same = read_manifest(tmp_path / "m.yaml")
    assert same.env_hash == chi.env_hash
    (tmp_path / "m.yaml").write_text(YAML.replace("8200", "8201"))
    assert read_manifest(tmp_path / "m.yaml").env_hash != chi.env_hash


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (SMALL + "keep_alife = true\n", "line 4: unknown field 'keep_alife', did you mean 'keep_alive'?"),
        (SMALL + '[environment.readiness]\ntimeout = 3\n', "line 5: unknown field 'timeout', did you mean 'timeout_sec'?"),
        (SMALL + 'readiness = { htp = ["x"] }\n', "line 4: unknown field 'htp', did you mean 'http'?"),
        ('[environment]\nname = "x"\nbase_image = "i"\nowns_lifecycle = false\n[[environment.services]]\nname = "a"\ncommand = "a"\nport = 1\n[[environment.services]]\nname = "b"\ncomand = "b"\nport = 2\n', "line 11: unknown field 'comand', did you mean 'command'?"),
        ('[environment]\nname = "x"\n', "one of 'image' and 'base_image' is needed"),
        ('[environment]\nimage = "x"\n', "'name' is missing"),
        (SMALL + "owns_lifecycle = false\n", "needs services to start"),
        (SMALL + 'ports = [0]\n', "line 4"),
        (SMALL + 'ports = ["80"]\n', "line 4"),
        (SMALL + 'isolation = "forever"\n', "isolation"),
        (SMALL + '[environment.readiness]\nhttp = ["http://example.com/health"]\n', "not an http address of the world itself"),
        (SMALL + '[environment.state]\npaths = ["data/x.db"]\n', "not an absolute path"),
        (SMALL + "[other]\nx = 1\n", "unknown table 'other'"),
        ("name = 1", "unknown table 'name'"),
        ("", "no [environment] table"),
        ("[environment", "is not TOML"),
        ('[environment]\nname = "a b"\nimage = "i"\n', "name"),
    ],
)  # fmt: skip
def test_a_mistake_is_answered_with_place_and_remedy(tmp_path, text, said):
    path = tmp_path / "environment.toml"
    path.write_text(text)
    with pytest.raises(ConfigurationError) as found:
        read_manifest(path)
    assert said in str(found.value) and str(path) in str(found.value), str(found.value)


def test_yaml_mistakes_have_their_line(tmp_path):
    path = tmp_path / "environment.yaml"
    path.write_text(YAML.replace("http:", "htttp:"))
    with pytest.raises(ConfigurationError, match="line 7: unknown field 'htttp', did you mean 'http'"):
        read_manifest(path)


def test_two_services_cannot_share_a_port(tmp_path):
    path = tmp_path / "environment.toml"
    text = (BENCHMARKS / "clawsbench" / "environment.toml").read_text()
    path.write_text(text.replace("port = 9002", "port = 9001"))
    with pytest.raises(ConfigurationError, match="two services have the port 9001"):
        read_manifest(path)


def test_names_and_versions_are_looked_up_in_order(tmp_path):
    mine, home = tmp_path / "mine", tmp_path / "home"
    users = home / ".config" / "benchflow" / "environments"
    for folder, names in (
        (mine, ("env0@1.2.toml", "env0@1.10.toml", "plain.toml")),
        (users, ("plain.toml", "own@3.yaml")),
    ):
        folder.mkdir(parents=True)
        for name in names:
            text = YAML if name.endswith("yaml") else SMALL
            (folder / name).write_text(text.replace('"i"', f'"{folder.name}-{name}"'))
    env = {"BENCHFLOW_ENV_REGISTRY": str(mine), "HOME": str(home)}
    plugins = registry()
    assert find_manifest("env0", plugins, env).version == "1.10", "the newest, by numbers"
    assert find_manifest("env0@1.2", plugins, env).version == "1.2"
    assert find_manifest("plain", plugins, env).environment.image == "mine-plain.toml", (
        "the variable before the user's own"
    )
    assert find_manifest("own", plugins, env).version == "3"
    assert [owner for owner, path in registered(plugins, env) if path.stem == "plain"] == [
        "BENCHFLOW_ENV_REGISTRY",
        "user",
    ]
    with pytest.raises(ConfigurationError, match=r"there is no environment 'env0@9'. Did you mean 'env0@1.2'\?|env0@9"):
        find_manifest("env0@9", plugins, env)
    with pytest.raises(ConfigurationError, match="names no folder"):
        find_manifest("x", plugins, {"BENCHFLOW_ENV_REGISTRY": "/nonexistent", "HOME": str(home)})


async def test_the_users_choice_comes_before_the_tasks_pin(task, rollout, tmp_path):
    folder = task()
    pinned = await rollout(folder)
    assert (
        pinned.plan.features.of("world").world.pinned_by == "task"
        and pinned.plan.features.of("world").world.name == "kv"
    )
    other = tmp_path / "other.toml"
    text = (folder / "environment" / "environment.toml").read_text()
    other.write_text(text.replace('name = "kv"\nbase_image', 'name = "mine"\nbase_image'))
    asked = await rollout(folder, environment_manifest=str(other))
    assert (
        asked.plan.features.of("world").world.name == "mine"
        and asked.plan.features.of("world").world.pinned_by == "option"
    )
    assert any("the task pins environment" in notice for notice in asked.plan.features.of("world").world.notices)
    assert asked.plan.features.of("world").world.env_hash != pinned.plan.features.of("world").world.env_hash
    same = await rollout(folder, environment_manifest=str(folder / "environment"))
    assert not same.plan.features.of("world").world.notices


async def test_a_pin_by_name_in_the_tasks_metadata(task, rollout, host, tmp_path):
    registry_folder = tmp_path / "registry"
    registry_folder.mkdir()
    host.env["BENCHFLOW_ENV_REGISTRY"] = str(registry_folder)
    folder = task(manifest=None)
    (folder / "task.toml").write_text(
        'version = "1.0"\n[metadata]\nenvironment_manifest = "kvs@2"\n[metadata.benchflow]\nallow_substitute = true\n'
    )
    with pytest.raises(BenchflowError, match="pins an environment: there is no environment 'kvs@2'"):
        await rollout(folder)
    (registry_folder / "kvs@2.toml").write_text(
        SMALL.replace('"i"', '"i"\nowns_lifecycle = false')
        + '[environment.task_selection]\nmechanism = "image"\n[[environment.services]]\nname = "kv"\ncommand = "kvd --port 9700 --db /data/kv.db"\nport = 9700\n'
    )
    made = await rollout(folder)
    assert made.plan.features.of("world").world.manifest.version == "2" and made.plan.features.of(
        "world"
    ).world.state_paths == ("/data/kv.db",)


async def test_what_cannot_be_had_is_refused_before_anything_starts(task, rollout, tmp_path):
    chi = str(BENCHMARKS / "chi-bench" / "environment.toml")
    with pytest.raises(CapabilityMissing, match=r"needs the image chi-bench:latest"):
        await rollout(task(), environment_manifest=chi)
    with pytest.raises(ConfigurationError, match="there is no state backend 'tape'"):
        folder = task()
        path = folder / "environment" / "environment.toml"
        path.write_text(path.read_text() + '[environment.state]\nkind = "tape"\n')
        await rollout(folder)
