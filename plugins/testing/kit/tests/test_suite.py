"""The rules of the kit: what a subclass may do, and what happens when it tries more."""

from __future__ import annotations

import pytest
from benchflow_testing_kit import AdapterConformance, PluginConformance, SandboxConformance, xfail

# One worker makes the runs that all tests of this module read.
pytestmark = [pytest.mark.xdist_group("kit-rules"), pytest.mark.timeout(1200)]


def subclass(base, **members):
    return type("TestMine", (base,), {"__module__": "third_party", **members})


def test_a_fixture_is_all_it_takes():
    made = subclass(SandboxConformance, plugin=pytest.fixture(lambda self: "mine"))
    assert made.test_exit_code_is_passed_on is SandboxConformance.test_exit_code_is_passed_on


@pytest.mark.parametrize("value", [None, False, lambda self: None, pytest.mark.skip(lambda self: None)])
def test_a_test_cannot_be_replaced(value):
    with pytest.raises(TypeError, match=r"test_exit_code_is_passed_on .*xfail\(reason"):
        subclass(SandboxConformance, test_exit_code_is_passed_on=value)


def test_a_test_cannot_be_replaced_by_a_mixin():
    mixin = type("Mixin", (), {"test_spec_is_frozen": lambda self: None})
    with pytest.raises(TypeError, match="test_spec_is_frozen"):
        type("TestMine", (mixin, SandboxConformance), {"__module__": "third_party"})


def test_a_test_cannot_be_replaced_with_a_mark_around_it():
    @pytest.mark.xfail(reason="looks fine, hides anything")
    def fake(self): ...

    with pytest.raises(TypeError, match="test_spec_is_frozen"):
        subclass(PluginConformance, test_spec_is_frozen=fake)


@pytest.mark.parametrize("name", ["bench", "box", "spec", "settings", "only_when_asked", "kind"])
def test_the_machinery_cannot_be_replaced(name):
    with pytest.raises(TypeError, match=name):
        subclass(SandboxConformance, **{name: None})


@pytest.mark.parametrize("mark", [pytest.mark.skip, [pytest.mark.quick, pytest.mark.skipif(True, reason="x")]])
def test_a_class_cannot_be_switched_off(mark):
    with pytest.raises(TypeError, match="switched off"):
        subclass(AdapterConformance, pytestmark=mark)
    with pytest.raises(TypeError, match="switched off"):
        subclass(AdapterConformance, __test__=False)


def test_xfail_needs_a_reason():
    with pytest.raises(TypeError):
        xfail()
    with pytest.raises(TypeError, match="reason"):
        xfail(reason="  ")


def test_xfail_of_a_test_that_does_not_exist_is_refused():
    with pytest.raises(TypeError, match="no such test"):
        subclass(SandboxConformance, test_exit_codes=xfail(reason="misspelt"))


def test_xfail_keeps_the_test_and_marks_it():
    made = subclass(SandboxConformance, test_stdin_is_passed_and_ends=xfail(reason="no stdin"))
    marks = {mark.name: mark for mark in made.test_stdin_is_passed_and_ends.pytestmark}
    assert marks["xfail"].kwargs == {"reason": "no stdin", "strict": True}
    assert {"asyncio", "quick"} <= set(marks)
    base = {mark.name for mark in SandboxConformance.test_stdin_is_passed_and_ends.pytestmark}
    assert "xfail" not in base, "the mark must not reach other plugins' classes"
    assert subclass(made, __qualname__="Again").test_stdin_is_passed_and_ends is made.test_stdin_is_passed_and_ends


def test_xfail_of_a_parametrized_test_is_not_strict():
    made = subclass(SandboxConformance, test_exit_code_is_passed_on=xfail(reason="255 is lost"))
    marks = {mark.name: mark for mark in made.test_exit_code_is_passed_on.pytestmark}
    assert marks["xfail"].kwargs["strict"] is False


def test_every_test_is_quick_or_soak():
    for name in dir(SandboxConformance):
        if name.startswith("test"):
            marks = {mark.name for mark in getattr(SandboxConformance, name).pytestmark}
            assert len(marks & {"quick", "soak"}) == 1, name


BEHAVIOUR = """
import asyncio
import pytest
from benchflow_core.contracts import DriverSpec, ExporterSpec
from benchflow_testing_kit import DriverConformance, ExporterConformance, xfail
from benchflow_testing_kit.suite import limit, soak

async def well_behaved(episode, params):
    await episode.prompt("agent", None)

async def silent(episode, params): ...

class TestPasses(DriverConformance):
    @pytest.fixture
    def plugin(self):
        return DriverSpec(summary="fine", drive=well_behaved)

class TestFailsAsExpected(DriverConformance):
    @pytest.fixture
    def plugin(self):
        return DriverSpec(summary="fine", drive=silent)
    test_driver_prompts_and_ends = xfail(reason="it never prompts")
    test_driver_can_be_cancelled = xfail(reason="it ends at once")

class TestPassesUnexpectedly(DriverConformance):
    @pytest.fixture
    def plugin(self):
        return DriverSpec(summary="fine", drive=well_behaved)
    test_driver_prompts_and_ends = xfail(reason="an excuse that is out of date")

class TestHasNoFixture(DriverConformance):
    pass

class TestOwnTests(DriverConformance):
    @pytest.fixture
    def plugin(self):
        return DriverSpec(summary="fine", drive=well_behaved)

    async def test_own_coroutine_runs(self):
        await asyncio.sleep(0)
        assert False, "it ran"

    @limit(0.2)
    async def test_own_limit(self):
        await asyncio.sleep(5)

    @soak
    async def test_own_soak(self):
        assert False
"""


@pytest.fixture(scope="module")
def behaviour(tmp_path_factory, run_kit):
    folder = tmp_path_factory.mktemp("behaviour")
    (folder / "test_behaviour.py").write_text(BEHAVIOUR)
    return run_kit(folder)


def test_the_kit_works_without_any_configuration(behaviour):
    """Strict asyncio mode, no markers registered, no conftest: what a third party starts with."""
    drives = "test_driver_prompts_and_ends"
    assert behaviour["TestPasses", drives] == {"passed"}
    assert behaviour["TestFailsAsExpected", drives] == {"skipped"}
    assert behaviour["TestPassesUnexpectedly", drives] == {"failure"}
    assert behaviour["TestHasNoFixture", drives] == {"error"}


def test_tests_of_the_author_are_part_of_the_class(behaviour):
    assert behaviour["TestOwnTests", "test_own_coroutine_runs"] == {"failure"}
    assert behaviour["TestOwnTests", "test_own_limit"] == {"failure"}
    assert behaviour["TestOwnTests", "test_own_soak"] == {"skipped"}


def test_soak_tests_run_when_asked_for(tmp_path, run_kit):
    (tmp_path / "test_behaviour.py").write_text(BEHAVIOUR)
    asked = run_kit(tmp_path, ["-m", "soak"])
    assert asked == {("TestOwnTests", "test_own_soak"): {"failure"}}
