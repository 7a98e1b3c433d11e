"""`--state`: a part of an environment, by the names people use."""

from __future__ import annotations

import json

import pytest
from benchflow_feature_world.choice import ChosenServices, choose_services, read_state

from benchflow_core.errors import BenchflowError
from benchflow_core.settings.job_file import read_settings

NAMES = ["mock-auth", "mock-gmail", "claw-gcal", "gdoc", "gdoc-archive"]
SECOND = """
[[environment.services]]
name = "mock-second"
command = "kvd --db /data/second.db --port 9701"
port = 9701
"""


def chosen(*tools: str) -> list[str]:
    return choose_services(ChosenServices(tools), NAMES, lambda name: [name])


@pytest.mark.parametrize(
    ("tools", "found"),
    [
        (["gmail"], ["mock-gmail"]),
        (["gcal", "GMAIL"], ["mock-gmail", "claw-gcal"]),
        (["claw-gcal"], ["claw-gcal"]),
        (["gdoc"], ["gdoc"]),
        (["archive"], ["gdoc-archive"]),
    ],
)
def test_names_that_people_use_are_found(tools, found):
    assert chosen(*tools) == found


def test_a_name_that_fits_none_or_several_is_refused():
    with pytest.raises(BenchflowError, match="has no 'gmial'") as none:
        chosen("gmial")
    assert "Did you mean 'mock-gmail'?" in str(none.value)
    with pytest.raises(BenchflowError, match="more than one service is a 'mock'"):
        chosen("mock")
    with pytest.raises(BenchflowError, match="names no service"):
        chosen()


def test_it_is_written_as_json_as_names_or_as_a_file(tmp_path):
    whole = {"name": "quiet", "tools": ["gmail", "gcal"]}
    (tmp_path / "state.yaml").write_text("name: quiet\ntools: [gmail, gcal]\n")
    assert read_state(json.dumps(whole)) == read_state(str(tmp_path / "state.yaml")) == whole
    assert read_state("gmail, gcal") == {"tools": ["gmail", "gcal"]}
    for wrong in ("", "{", '{"tools": "gmail"}', '{"tool": ["gmail"]}', '{"tools": []}', '{"tools": [1]}', "none.json"):
        with pytest.raises(BenchflowError):
            read_settings(None, (), {"state": wrong})


async def test_only_the_chosen_services_are_started(task, run):
    checks = """#!/bin/sh
python3 - <<'PY'
import socket
def there(port):
    with socket.socket() as s:
        return s.connect_ex(("127.0.0.1", port)) == 0
open("/logs/verifier/reward.txt", "w").write(str(float(there(9700) and not there(9701))))
PY
"""
    folder = task("true", checks)
    manifest = folder / "environment" / "environment.toml"
    manifest.write_text(manifest.read_text() + SECOND)
    both = await run(folder)
    assert both.rewards == {"reward": 0.0} and both.world["services"] == ["kv", "mock-second"], both.error
    one = await run(folder, state=ChosenServices(["kv"], "small"))
    assert one.rewards == {"reward": 1.0} and one.world["services"] == ["kv"], one.error
    assert one.world["chosen"] == {"name": "small", "tools": ["kv"]}
    assert one.world["env_hash"] != both.world["env_hash"], "a part is another environment"
    assert one.world["state"]["paths"] == ["/data/kv.db"]
