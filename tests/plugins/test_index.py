"""Names from metadata, and the small decisions about them."""

from __future__ import annotations

import sys
from importlib.metadata import distributions

import pytest
from packaging.requirements import Requirement

from benchflow_core.hookspecs import GROUPS
from benchflow_core.plugins import Policy, Registry
from benchflow_core.plugins.compatibility import accepts
from benchflow_core.plugins.distributions import Distribution, canonical, installed
from benchflow_core.plugins.index import COMMAND_GROUP, Index, normalised
from benchflow_core.plugins.specs import wrong_fields


def index_of(text: str, name: str = "benchflow-agent-claude") -> Index:
    return Index([Distribution(name, "1.0", lambda file: text if file == "entry_points.txt" else None)])


def test_the_command_group_is_the_one_of_the_contract():
    assert GROUPS["command"] == COMMAND_GROUP


def test_our_scan_finds_what_the_standard_library_finds():
    found = {(one.name, one.version) for one in installed()}
    expected = {(canonical(one.name), one.version) for one in distributions() if one.name}
    assert found == expected and len(found) > 10


@pytest.mark.parametrize(
    ("names", "called"),
    [
        (["claude-agent-acp", "claude"], "claude"),
        (["a", "agent-claude", "claude"], "agent-claude"),
        (["zebra", "ant"], "ant"),
        (["long-one", "b"], "b"),
    ],
)
def test_what_a_plugin_with_aliases_is_called(names, called):
    index = index_of("[benchflow.agents]\n" + "".join(f"{name} = package.module\n" for name in names))
    (plugin,) = index.plugins["benchflow.agents"]
    assert plugin.name == called and set(plugin.aliases) == set(names) - {called}


def test_one_name_with_two_values_keeps_the_first():
    index = index_of("[benchflow.agents]\nx = one\nx = two\nx = one\n")
    assert [plugin.module for plugin in index.plugins["benchflow.agents"]] == ["one"]
    assert [problem.message for problem in index.problems] == [
        "It names 'x' in [benchflow.agents] twice: one and two. The first counts."
    ]


@pytest.mark.parametrize(
    "text", ["", "\0\0", "[", "]", "[]\n=\n", "[benchflow.agents]\n=\n= x\n[benchflow.agents\nq = 1", "[benchflow.]\n"]
)
def test_rubbish_never_raises(text):
    index_of(text)


def test_comments_and_other_groups_are_passed_over():
    index = index_of("# benchflow.agents\n[console_scripts]\nrubbish\n\n[benchflow.agents]\n; no\nx = a.b\n")
    assert not index.problems
    assert [plugin.names for plugin in index.plugins["benchflow.agents"]] == [("x",)]


def test_names_as_typed():
    assert normalised(" Claude_Agent_ACP ") == "claude-agent-acp"


def test_headers_end_where_the_description_begins():
    metadata = "Name: x\nRequires-Dist: a\nRequires-Dist: b ;\n  extra == 'c'\nSummary: s\n\nSummary: not this\n"
    one = Distribution("x", "", lambda file: metadata if file == "METADATA" else None)
    assert one.header("requires-dist") == ["a", "b ; extra == 'c'"] and one.summary == "s" and one.version == "?"


VERSIONS = ["0.8.0.dev0", "0.8.0.dev12", "0.8", "0.8.0", "0.8.1", "0.9.0.dev3", "0.9", "0.10.0", "1.0"]
BOUNDS = ["0.7", "0.8.0.dev0", "0.8.0.dev5", "0.8", "0.8.0", "0.9", "0.9.0.dev0", "0.9.0", "1", "1.0.0"]


@pytest.mark.parametrize("version", VERSIONS)
def test_the_quick_comparison_of_versions_agrees_with_packaging(version):
    for low in BOUNDS:
        for high in BOUNDS:
            for text in (
                f"benchflow-core>={low},<{high}",
                f"Benchflow_Core <{high}, >={low}",
                f"benchflow.core>={low}",
            ):
                expected = Requirement(text).specifier.contains(version, prereleases=True)
                assert accepts(text, version) == expected, (text, version)


@pytest.mark.parametrize(
    ("requirement", "met"),
    [
        ("benchflow-core", True),
        ("benchflow-core~=0.8.0.dev0", True),
        ("benchflow-core (>=0.8.0.dev0)", True),
        ("benchflow-core[testing]==99", False),
        ("benchflow-core>=99; extra == 'dev'", True),
        ("benchflow-core>=99; python_version < '3'", True),
        ("benchflow-core!=0.8.0.dev0", False),
        ("benchflow-core >> 1", False),
    ],
)
def test_richer_requirements(requirement, met):
    assert accepts(requirement, "0.8.0.dev0") is met


def test_every_default_of_every_spec_passes_its_own_check():
    """So that the annotations stay in the words that the check understands."""
    from benchflow_core import contracts

    for kind in GROUPS:
        spec = getattr(contracts, f"{kind.capitalize()}Spec")
        required = {"summary": "s", "port": 1, "program": "p", "file_name": "f", "signature": "s"}
        sets = {"methods": frozenset(), "wires": frozenset(), "capabilities": frozenset()}
        given = {**required, **sets}
        wanted = [name for name, field in spec.__dataclass_fields__.items() if _is_required(field)]
        made = spec(**{name: given.get(name, lambda *_: None) for name in wanted})
        assert wrong_fields(made) == [], kind
        assert wrong_fields(spec(**{name: object() for name in wanted})) != [], kind


def _is_required(field) -> bool:
    from dataclasses import MISSING

    return field.default is MISSING and field.default_factory is MISSING


def test_loading_in_process_gives_a_stamp(monkeypatch, request):
    folder = request.config.rootpath / "tests" / "data" / "dists" / "multi"
    monkeypatch.setattr(sys, "path", [*sys.path, str(folder)])
    warnings: list[str] = []
    registry = Registry(Policy(allow=("fake-multi",)), lambda line, cause: warnings.append(line))
    loaded = registry.get("agent", "multi-too")
    assert loaded.stamp() == {"kind": "agent", "name": "multi", "distribution": "fake-multi", "version": "1.0"}
    assert registry.get("agent", "multi") is loaded and loaded.aliases == ("multi-too",)
    assert registry.loaded() == [loaded] and registry.all("agent") == [loaded]
    assert registry.names("agent") == ["multi"] and registry.names("agent", aliases=True) == ["multi", "multi-too"]
    assert warnings == []
