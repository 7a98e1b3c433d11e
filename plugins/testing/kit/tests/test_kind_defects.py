"""Each conformance test of the other kinds fails on a plugin that is broken in just that way."""

from __future__ import annotations

import ast
import os
import sys
from pathlib import Path

import benchflow_testing_kit as kit
import pytest
from benchflow_command_authoring.render import render, variables

from benchflow_core.hookspecs import GROUPS

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from kit_defects.kinds import ALL  # noqa: E402

# One worker makes the runs that all tests of this module read.
pytestmark = [pytest.mark.merge, pytest.mark.xdist_group("kit-kinds"), pytest.mark.timeout(1200)]

KINDS = tuple(kind for kind in GROUPS if kind != "sandbox")
RIGHT = (*(f"{kind}_right" for kind in KINDS), "verifier_runs_scripts")
TABLE = [(item.kind, item.name, test) for item in ALL for test in item.breaks]

MODULE = '''
import importlib, json
import pytest
import benchflow_testing_kit as kit
from kit_defects.kinds import ALL, Broken
import kit_defects.gateways

def own_fixtures(kind):
    """What the template's own tests supply: samples of tasks, cases, addresses."""
    found = importlib.import_module(f"base_{kind}")
    cls = next(v for n, v in vars(found).items() if n.startswith("Test"))
    return {n: v for n, v in vars(cls).items() if n in cls.settings and n != "plugin"}

def suite(item):
    base = importlib.import_module(f"benchflow_{item.kind}_base.plugin")
    right = getattr(base, f"benchflow_{item.kind}")()

    def plugin(self):
        return item.spec(right)

    members = {"plugin": pytest.fixture(plugin), **own_fixtures(item.kind), "__module__": __name__}
    for name, value in item.fixtures.items():
        if value is None:
            members.pop(name)
    return type(f"Test_{item.kind}_{item.name}", (getattr(kit, f"{item.kind.capitalize()}Conformance"),), members)

for kind in KINDS:
    ALL.append(Broken(kind, "right", (), lambda spec: spec))

for item in ALL:
    globals()[f"Test_{item.kind}_{item.name}"] = suite(item)
'''


@pytest.fixture(scope="module")
def results(tmp_path_factory, run_kit, install):
    folder = tmp_path_factory.mktemp("kinds")
    for kind in KINDS:
        values = variables(kind, "base", "kit", "0.8.0.dev0")
        files = render(kind, values)
        package = {path: text for path, text in files.items() if path.startswith(values["module"])}
        package[f"base_{kind}.py"] = files[f"tests/test_{kind}.py"]
        install(
            folder,
            values["dist"],
            (GROUPS[kind].removeprefix("benchflow."), "base", f"{values['module']}.plugin"),
            package,
        )
    (folder / "test_kinds.py").write_text(f"KINDS = {KINDS}\n{MODULE}")
    broken = [f"test_kinds.py::Test_{item.kind}_{item.name}::{test}" for item in _all() for test in item.breaks]
    control = [f"test_kinds.py::Test_{name}" for name in RIGHT]
    return run_kit(folder, [*broken, *control], env={"BENCHFLOW_TESTING_PATIENCE": "0.3"}, workers=3)


def _all():
    """The gateways are made from a rendered package; their table is read off the source here."""
    return [*ALL, *GATEWAYS]


class Row:
    kind = "gateway"

    def __init__(self, name: str, breaks: str) -> None:
        self.name, self.breaks = name, tuple(breaks.split())


def gateways() -> list[Row]:
    tree = ast.parse((HERE / "kit_defects" / "gateways.py").read_text())
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.decorator_list]
    return [Row(node.name, node.decorator_list[0].args[0].value) for node in classes]


GATEWAYS = gateways()
TABLE += [(row.kind, row.name, test) for row in GATEWAYS for test in row.breaks]


@pytest.mark.parametrize(("kind", "name", "test"), TABLE)
def test_defect_is_noticed(results, kind, name, test):
    found = results[f"Test_{kind}_{name}", test]
    if found == {"skipped"} and kind in ("agent", "verifier") and os.geteuid() != 0:
        pytest.skip("the local sandbox is not available to a normal user here")
    assert "failure" in found


@pytest.mark.parametrize("name", RIGHT)
def test_nothing_is_noticed_where_nothing_is_wrong(results, name):
    found = {test: kinds for (case, test), kinds in results.items() if case == f"Test_{name}"}
    assert len(found) > 5
    assert {test: kinds for test, kinds in found.items() if kinds & {"failure", "error"}} == {}


def test_every_conformance_test_has_a_defect_that_it_notices():
    general = {name for name in dir(kit.PluginConformance) if name.startswith("test")}
    missing = []
    for kind in KINDS:
        suite = getattr(kit, f"{kind.capitalize()}Conformance")
        proven = {test for row_kind, _, test in TABLE if row_kind == kind}
        missing += [f"{kind}: {n}" for n in dir(suite) if n.startswith("test") and n not in general | proven]
    assert not missing
