"""What holds for every plugin: each general test fails on a package that is broken in just that way."""

from __future__ import annotations

import pytest
from benchflow_testing_kit import PluginConformance

# One worker makes the runs that all tests of this module read.
pytestmark = [pytest.mark.merge, pytest.mark.xdist_group("kit-plugins"), pytest.mark.timeout(1200)]

GOOD = """
from benchflow_core.contracts import Check, CommandSpec
from benchflow_core.hookspecs import hookimpl

def build():
    import click
    return click.Command("x")

@hookimpl
def benchflow_command():
    return CommandSpec(summary="fine", build=build)
"""

BROKEN = {
    "test_hook_returns_the_spec_of_its_kind": GOOD.replace('summary="fine"', 'summary="two\\nlines"'),
    "test_check_returns_checks_and_hides_credentials": GOOD.replace(
        "build=build", 'build=build, check=lambda: [Check("backend", "fail", "down")]'
    ),
    "test_import_is_light": "import typing_extensions\n" + GOOD,
    "test_import_has_no_side_effects": "open('written-on-import', 'w').close()\nprint('hello')\n" + GOOD,
    "test_hook_is_pure": "import itertools\ncount = itertools.count()\n"
    + GOOD.replace('"fine"', 'f"call {next(count)}"'),
    "test_imports_only_the_public_core": GOOD + "\ndef later():\n    from benchflow_core.plugins import registry\n",
}

MODULE = """
import pytest
from benchflow_core.contracts import CommandSpec
from benchflow_testing_kit import CommandConformance

def case(name, value):
    class Case(CommandConformance):
        @pytest.fixture
        def plugin(self):
            return value
    globals()["Test_" + name] = Case

class Thawed(CommandSpec):
    def __setattr__(self, name, value): ...

for name in NAMES:
    case(name.replace("-", "_"), name)
case("thawed", Thawed("fine", lambda: None))
case("spec", CommandSpec("fine", lambda: None))
"""


@pytest.fixture(scope="module")
def results(tmp_path_factory, run_kit, install):
    folder = tmp_path_factory.mktemp("plugins")
    sources = {f"broken-{n}": text for n, text in enumerate(BROKEN.values())} | {"good": GOOD}
    for name, text in sources.items():
        module = f"kit_{name.replace('-', '_')}"
        install(folder, f"kit-{name}", ("commands", name, module), {f"{module}.py": text})
    install(folder, "kit-coreless", ("commands", "coreless", "kit_coreless"), {"kit_coreless.py": GOOD}, requires="")
    install(
        folder,
        "kit-rangeless",
        ("commands", "rangeless", "kit_rangeless"),
        {"kit_rangeless.py": GOOD},
        requires="benchflow-core",
    )
    names = [*sources, "coreless", "rangeless"]
    (folder / "test_cases.py").write_text(f"NAMES = {names}\n{MODULE}")
    return run_kit(folder)


@pytest.mark.parametrize(("number", "test"), list(enumerate(BROKEN)))
def test_broken_plugin_is_noticed(results, number, test):
    assert results[f"Test_broken_{number}", test] == {"failure"}


def test_good_plugin_passes(results):
    tests = [name for name in dir(PluginConformance) if name.startswith("test")]
    assert {test: results["Test_good", test] for test in tests} == {test: {"passed"} for test in tests}


def test_requirement_of_the_core_is_checked(results):
    for name in ("coreless", "rangeless"):
        assert results[f"Test_{name}", "test_distribution_requires_the_core"] == {"failure"}


def test_a_spec_that_can_be_changed_is_noticed(results):
    assert results["Test_thawed", "test_spec_is_frozen"] == {"failure"}


def test_metadata_tests_are_skipped_for_a_bare_spec(results):
    assert results["Test_spec", "test_distribution_requires_the_core"] == {"skipped"}
    assert results["Test_spec", "test_import_is_light"] == {"skipped"}


def test_every_general_test_is_proven():
    """The name of an entry point is checked by the loader as well, which refuses a bad one before any test runs."""
    proven = {
        *BROKEN,
        "test_distribution_requires_the_core",
        "test_spec_is_frozen",
        "test_entry_point_has_a_valid_name",
    }
    assert {name for name in dir(PluginConformance) if name.startswith("test")} == proven
