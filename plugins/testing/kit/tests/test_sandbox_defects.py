"""A conformance test that cannot fail is a defect: each one fails on a sandbox that is broken in just that way."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from benchflow_command_authoring.render import render, variables
from benchflow_testing_kit import PluginConformance, SandboxConformance
from benchflow_testing_kit.sandbox.commands import CommandTests
from benchflow_testing_kit.sandbox.endings import EndingTests
from benchflow_testing_kit.sandbox.lifecycle import LifecycleTests
from benchflow_testing_kit.sandbox.processes import ProcessTests
from benchflow_testing_kit.sandbox.transfers import TransferTests

sys.path.insert(0, str(Path(__file__).parent))

from kit_defects import DEFECTS

# One worker makes the runs that all tests of this module read.
pytestmark = [pytest.mark.merge, pytest.mark.xdist_group("kit-sandbox"), pytest.mark.timeout(1200)]

SOAK = os.environ.get("BENCHFLOW_SOAK") == "1"
TABLE = [(defect.name, test) for defect in DEFECTS.values() for test in defect.breaks]


def is_soak(test: str) -> bool:
    return any(mark.name == "soak" for mark in getattr(SandboxConformance, test).pytestmark)


CONTROL = sorted(
    name
    for group in (CommandTests, EndingTests, LifecycleTests, ProcessTests, TransferTests)
    for name in vars(group)
    if name.startswith("test") and not is_soak(name) and not hasattr(getattr(group, name), "benchflow_needs")
)

MODULE = """
import http.server, threading
import pytest
from benchflow_testing_kit import SandboxConformance
from benchflow_testing_kit.sandbox.net import host_addresses
from kit_defects import DEFECTS

@pytest.fixture(scope="session")
def url():
    server = http.server.ThreadingHTTPServer(("0.0.0.0", 0), http.server.SimpleHTTPRequestHandler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://{(host_addresses() or ['127.0.0.1'])[0]}:{server.server_port}/"
    server.shutdown()

def broken(defect):
    class Broken(SandboxConformance):
        @pytest.fixture
        def plugin(self):
            return defect.spec()

        @pytest.fixture
        def public_url(self, url):
            return url

    return Broken

for name, defect in DEFECTS.items():
    globals()["Test" + name] = broken(defect)

class TestControl(SandboxConformance):
    @pytest.fixture
    def plugin(self):
        return "folder"

class TestReapsNothing(SandboxConformance):
    @pytest.fixture
    def plugin(self):
        return "reaps-nothing"
"""

REAPS_NOTHING = """
import dataclasses
from benchflow_core.hookspecs import hookimpl
from benchflow_sandbox_folder.plugin import benchflow_sandbox as folder

@hookimpl
def benchflow_sandbox():
    async def reap(lease): ...
    return dataclasses.replace(folder(), reap=reap)
"""


@pytest.fixture(scope="module")
def results(tmp_path_factory, run_kit, install):
    folder = tmp_path_factory.mktemp("defects")
    values = variables("sandbox", "folder", "kit", "0.8.0.dev0")
    package = {path: text for path, text in render("sandbox", values).items() if path.startswith(values["module"])}
    install(folder, values["dist"], ("sandboxes", "folder", "benchflow_sandbox_folder.plugin"), package)
    reaps_nothing = {"reaps_nothing.py": REAPS_NOTHING}
    install(folder, "kit-reaps-nothing", ("sandboxes", "reaps-nothing", "reaps_nothing"), reaps_nothing)
    (folder / "test_broken.py").write_text(MODULE)
    env = {"BENCHFLOW_SOAK": "1", "BENCHFLOW_TESTING_PATIENCE": "0.1", "TMPDIR": str(folder)}
    wanted = [f"test_broken.py::Test{name}::{test}" for name, test in TABLE if SOAK or not is_soak(test)]
    wanted += [f"test_broken.py::TestControl::{test}" for test in CONTROL]
    wanted.append("test_broken.py::TestReapsNothing::test_crash_of_the_host_process_leaks_nothing")
    yield run_kit(folder, wanted, env=env, workers=3)
    _remove_what_was_left(folder, values["dist"])


def _remove_what_was_left(folder: Path, dist: str) -> None:
    """The broken sandboxes leave boxes behind on purpose."""
    sys.path.insert(0, str(folder))
    try:
        from benchflow_sandbox_folder import trees

        for left in folder.glob(f"{dist}-*/*"):
            trees.end_all("BENCHFLOW_BOX", left.name)
    finally:
        sys.path.remove(str(folder))


@pytest.mark.parametrize(("defect", "test"), TABLE)
def test_defect_is_noticed(results, defect, test):
    if is_soak(test) and not SOAK:
        pytest.skip("soak test: run with BENCHFLOW_SOAK=1")
    found = results[f"Test{defect}", test]
    if found == {"skipped"} and DEFECTS[defect].base == "local" and os.geteuid() != 0:
        pytest.skip("the local sandbox cannot do this for a normal user here")
    assert "failure" in found


@pytest.mark.parametrize("test", CONTROL)
def test_nothing_is_noticed_where_nothing_is_wrong(results, test):
    """The table's run is impatient: that alone must not make a test fail."""
    assert results["TestControl", test] == {"passed"}


def test_a_crash_that_leaks_is_noticed(results):
    assert results["TestReapsNothing", "test_crash_of_the_host_process_leaks_nothing"] == {"failure"}


def test_every_conformance_test_has_a_defect_that_it_notices():
    tests = {name for name in dir(SandboxConformance) if name.startswith("test")}
    proven = {test for _, test in TABLE} | {"test_crash_of_the_host_process_leaks_nothing"}
    general = {name for name in dir(PluginConformance) if name.startswith("test")}
    assert tests - proven - general == set()
    assert proven <= tests
