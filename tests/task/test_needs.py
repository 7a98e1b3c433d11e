from __future__ import annotations

import pytest

from benchflow_core.task import load_task, required_capabilities, wanted_capabilities

PLAIN = {"image-build"}

CASES = {
    "nothing special": ("", set()),
    "root by name and number": ('[agent]\nuser = "root"\n[verifier]\nuser = 0\n', set()),
    "windows": ('[environment]\nos = "windows"\n', {"windows"}),
    "gpu": ("[environment]\ngpus = 2\n", {"gpu"}),
    "tpu": ('[environment.tpu]\ntype = "v4"\ntopology = "2x4"\n', {"tpu"}),
    "no network": ('[environment]\nnetwork_mode = "no-network"\n', {"network-none"}),
    "allowlist": ('[environment]\nnetwork_mode = "allowlist"\nallowed_hosts = ["a.b"]\n', {"network-allowlist"}),
    "agent cut off": ('[agent]\nnetwork_mode = "no-network"\n', {"network-none", "network-dynamic"}),
    "agent as the rest": (
        '[environment]\nnetwork_mode = "no-network"\n[agent]\nnetwork_mode = "no-network"\n',
        {"network-none"},
    ),
    "verifier cut off": ('[verifier]\nnetwork_mode = "no-network"\n', {"network-none"}),
    "agent user": ('[agent]\nuser = "bob"\n', {"users"}),
    "verifier uid": ("[verifier]\nuser = 1000\n", {"users"}),
    "collect user": ('[[verifier.collect]]\ncommand = "x"\nuser = "db"\n', {"users"}),
    "sidecar artifact": ('artifacts = [{source = "/x", service = "db"}]\n', {"compose"}),
    "sidecar collect": ('[[verifier.collect]]\ncommand = "x"\nservice = "db"\n', {"compose"}),
    "image": ('[environment]\ndocker_image = "x:1"\n', {"image-prebuilt"}),
    "verifier image": ('[verifier.environment]\ndocker_image = "v:1"\n', {"image-prebuilt"}),
    "limits are only wanted": ("[environment]\ncpus = 4\nmemory_mb = 100\nstorage_mb = 5\n", set()),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_required(make_task, case: str) -> None:
    config, expected = CASES[case]
    files = {"task.toml": config, "tests/test.bat": "x"}
    found = required_capabilities(load_task(make_task(files=files)))
    basic = set() if "docker_image" in config and "[environment]" in config else PLAIN
    assert set(found) == expected | basic
    assert all(why for why in found.values())


def test_compose(make_task) -> None:
    found = required_capabilities(load_task(make_task(files={"environment/docker-compose.yaml": "services: {}\n"})))
    assert found["compose"] == "environment: docker-compose.yaml"


def test_a_substitute_takes_the_place_of_the_image(make_task) -> None:
    config = "[metadata.benchflow]\nallow_substitute = true\n[environment]\ndocker_image = 'x'\n"
    assert required_capabilities(load_task(make_task(files={"task.toml": config}))) == {}


def test_a_verifier_network_of_its_own_needs_a_running_box_changed_only_when_shared(make_task) -> None:
    task = load_task(make_task(files={"task.toml": '[verifier]\nnetwork_mode = "no-network"\n'}))
    assert "network-dynamic" not in required_capabilities(task, isolation="fresh")
    assert "network-dynamic" in required_capabilities(task, isolation="shared")


def test_limits_are_wanted(make_task) -> None:
    task = load_task(make_task(files={"task.toml": "[environment]\ncpus = 4\nmemory_mb = 100\nstorage_mb = 5\n"}))
    assert wanted_capabilities(task) == {
        "limit-cpu": "cpus = 4",
        "limit-memory": "memory_mb = 100",
        "limit-storage": "storage_mb = 5",
        "network-public": "network is public",
    }


def test_each_step_counts(make_task) -> None:
    files = {
        "task.toml": '[[steps]]\nname = "one"\n[[steps]]\nname = "two"\n[steps.agent]\nuser = "bob"\n',
        "steps/one/instruction.md": "1",
        "steps/two/instruction.md": "2",
    }
    assert required_capabilities(load_task(make_task(files=files)))["users"] == "steps.two.agent.user is bob"
