"""Worlds as data, and what the five plugins say about themselves."""

from __future__ import annotations

import importlib
import json

import pytest
from benchflow_claw_kit.worlds import read_world, scenarios
from benchflow_testing_kit import ServiceConformance

from benchflow_core.contracts import ServiceContext

NAMES = ("gmail", "slack", "gcal", "gdoc", "gdrive")


class TestConformance(ServiceConformance):
    @pytest.fixture(params=NAMES)
    def plugin(self, request) -> str:
        return request.param


@pytest.mark.parametrize("name", NAMES)
def test_the_command_lines_of_a_service(name):
    spec = importlib.import_module(f"benchflow_service_claw_{name}.plugin").benchflow_service()
    context = ServiceContext(port=1, data_dir="/d", program=f"/x/{spec.program}", db="/d/w.db")
    assert spec.program == f"claw-{name}" and spec.distribution == f"benchflow-service-claw-{name}"
    assert spec.seed(context) == (f"/x/claw-{name}", *"--db /d/w.db seed --scenario office --seed 0".split())
    assert spec.diff(context, "/b.db") == (f"/x/claw-{name}", *"--db /d/w.db diff --base /b.db --json".split())


def test_values_are_filled_in(tmp_path):
    file = tmp_path / "shop.json"
    file.write_text(json.dumps({"name": "$shop", "text": ["$${price} at $shop for $$$price", {"all": "$list"}]}))
    world = read_world(file, shop="Luz", price=3, list=[1, {"a": 2}])
    assert world == {"name": "Luz", "text": ["${price} at Luz for $3", {"all": [1, {"a": 2}]}]}
    with pytest.raises(KeyError, match="price"):
        read_world(file, shop="Luz", list=[])


def test_a_world_is_a_scenario_by_name_with_its_own_words_and_seed():
    loaded = []

    def shop(random):
        """A shop."""
        return {"n": random.random()}

    found = scenarios(lambda store, world: loaded.append(world), shop)
    for seed in (1, 2, 1):
        found["shop"](None, seed)
    assert list(found) == ["shop"] and found["shop"].__doc__ == "A shop."
    assert loaded[0] == loaded[2] != loaded[1]
