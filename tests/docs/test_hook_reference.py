"""The hook reference says what the code says: every hook with its signature, every field of every spec."""

from __future__ import annotations

import dataclasses
import importlib.util
import inspect
import re
from pathlib import Path

import pytest

from benchflow_core import contracts, hookspecs

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "plugins" / "hooks.md"


@pytest.fixture(scope="module")
def text() -> str:
    return PAGE.read_text("utf-8")


def section(text: str, heading: str) -> str:
    found = re.search(rf"^{heading}\n(.*?)(?=^##+ |\Z)", text, re.MULTILINE | re.DOTALL)
    assert found, f"no section {heading!r}"
    return found[1]


def test_page_is_up_to_date():
    spec = importlib.util.spec_from_file_location("hook_reference", ROOT / "scripts" / "hook_reference.py")
    generator = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generator)
    assert PAGE.read_text("utf-8") == generator.page(), "stale: run python scripts/hook_reference.py"


def test_every_hook_has_a_kind_and_every_kind_a_hook():
    hooks = {name for name in vars(hookspecs) if name.startswith("benchflow_")}
    assert hooks == {f"benchflow_{kind}" for kind in hookspecs.GROUPS}


@pytest.mark.parametrize("kind", hookspecs.GROUPS)
def test_hook_is_documented_with_its_signature(text, kind):
    hook = getattr(hookspecs, f"benchflow_{kind}")
    documented = section(text, f"## {kind}")
    assert f"def benchflow_{kind}{inspect.signature(hook)}".replace("'", "") in documented
    assert inspect.getdoc(hook) in documented
    assert f"`{hookspecs.GROUPS[kind]}`" in documented
    assert f"bench plugins new {kind} NAME" in documented
    assert f"def benchflow_{kind}() ->" in documented.partition("bench plugins new")[2], "there is no example"


@pytest.mark.parametrize("kind", hookspecs.GROUPS)
def test_every_field_of_the_spec_is_documented(text, kind):
    spec = getattr(contracts, f"{kind.capitalize()}Spec")
    rows = dict(re.findall(r"^\| `(\w+)` \|(.*)\|$", section(text, f"### {spec.__name__}"), re.MULTILINE))
    assert list(rows) == [field.name for field in dataclasses.fields(spec)]
    for field in dataclasses.fields(spec):
        type_cell, default, meaning = re.split(r"(?<!\\)\|", rows[field.name])
        assert type_cell.strip(" `").replace("\\|", "|") == str(field.type).replace('"', "'")
        required = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        assert (default.strip() == "required") is required, field.name
        assert meaning.strip(), f"{spec.__name__}.{field.name} has no meaning: add a docstring below it"


def test_every_public_type_has_a_section(text):
    for name in contracts.__all__:
        if inspect.isclass(getattr(contracts, name)):
            section(text, f"### {name}")


def test_fixtures_in_the_guide_are_those_of_the_kit():
    """docs/plugins/testing.md lists every fixture that a suite may be given, and no other."""
    import benchflow_testing_kit as kit

    guide = (ROOT / "docs" / "plugins" / "testing.md").read_text("utf-8")
    table = guide.partition("## What a suite can be told")[2].partition("```")[0]
    listed = set(re.findall(r"`([a-z_]+)`", "\n".join(row.split("|")[2] for row in table.splitlines() if "|" in row)))
    suites = [getattr(kit, name) for name in kit.__all__ if name.endswith("Conformance")]
    assert listed == set().union(*(suite.settings for suite in suites)) - {"plugin"}
    assert all(suite.__name__ in guide for suite in suites)
