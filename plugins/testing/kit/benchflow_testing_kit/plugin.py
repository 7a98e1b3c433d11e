"""What holds for a plugin of any kind."""

from __future__ import annotations

import dataclasses
import functools
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, ClassVar

import pytest

from benchflow_core.contracts import Check
from benchflow_testing_kit.imports import forbidden_imports
from benchflow_testing_kit.probe import PROBE
from benchflow_testing_kit.resolve import Resolved, resolve, spec_type
from benchflow_testing_kit.suite import Conformance

__all__ = ["PluginConformance"]

_CANARY = "benchflow-canary-7f3a91"


class PluginConformance(Conformance):
    """Every kind's suite begins with these. The `plugin` fixture returns an entry-point name, or a spec."""

    kind: ClassVar[str] = ""

    @pytest.fixture
    def plugin(self) -> object:
        pytest.fail(f"{type(self).__name__} needs a fixture `plugin` that returns the entry-point name of the plugin.")

    @pytest.fixture
    def resolved(self, plugin: object) -> Resolved:
        return resolve(self.kind, plugin)

    @pytest.fixture
    def spec(self, resolved: Resolved) -> Any:
        return resolved.spec

    @pytest.fixture
    def probed(self, resolved: Resolved) -> dict[str, Any]:
        """What importing the plugin and calling its hook does, seen from a process of its own."""
        return _probe(resolved.entry_point().module, f"benchflow_{self.kind}")

    def test_hook_returns_the_spec_of_its_kind(self, spec: Any) -> None:
        expected = spec_type(self.kind)
        assert isinstance(spec, expected), f"the hook returned {type(spec).__name__}, not {expected.__name__}"
        assert spec.summary.strip() and "\n" not in spec.summary, "`summary` is one line for people"

    def test_spec_is_frozen(self, spec: Any) -> None:
        with pytest.raises(dataclasses.FrozenInstanceError):
            spec.summary = "changed"

    def test_check_returns_checks_and_hides_credentials(self, spec: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in _credentials(spec):
            monkeypatch.setenv(name, _CANARY)
        found = spec.check()
        assert isinstance(found, list) and all(isinstance(c, Check) for c in found)
        assert _CANARY not in repr(found), "a check shows the value of a credential"
        for check in found:
            assert check.status in ("ok", "warn", "fail", "skip") and check.name.strip(), check
            assert check.status != "fail" or check.remedy, f"a failed check says what to do: {check}"

    def test_entry_point_has_a_valid_name(self, resolved: Resolved) -> None:
        name = resolved.entry_point().name
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name), f"{name!r}: lower case, digits and single dashes"

    def test_distribution_requires_the_core(self, resolved: Resolved) -> None:
        from packaging.requirements import Requirement

        dist = resolved.distribution()
        if dist.name == "benchflow-core":
            return
        found = [r for r in map(Requirement, dist.requires or ()) if r.name == "benchflow-core" and r.marker is None]
        assert found, f"{dist.name} does not depend on benchflow-core"
        assert any(r.specifier for r in found), f"{dist.name} names no range of benchflow-core, e.g. >=0.8,<0.9"

    def test_import_is_light(self, probed: dict[str, Any]) -> None:
        assert not probed["heavy"], f"importing the plugin imports {probed['heavy']}: do that inside the factory"

    def test_import_has_no_side_effects(self, probed: dict[str, Any]) -> None:
        assert not probed["effects"], f"importing the plugin and calling its hook does {probed['effects']}"
        assert not probed["printed"], f"importing the plugin prints {probed['printed'][:200]!r}"

    def test_hook_is_pure(self, probed: dict[str, Any]) -> None:
        assert not probed["differences"], f"two calls of the hook differ in {probed['differences']}"

    def test_imports_only_the_public_core(self, resolved: Resolved) -> None:
        dist = resolved.distribution()
        if dist.name == "benchflow-core":
            return
        import importlib.util

        package = resolved.entry_point().module.partition(".")[0]
        found = importlib.util.find_spec(package)
        assert found is not None and found.origin is not None
        root = Path(found.origin)
        files = sorted(root.parent.rglob("*.py")) if root.name == "__init__.py" else [root]
        bad = [line for file in files for line in forbidden_imports(file)]
        assert not bad, "private modules of the core:\n" + "\n".join(bad)


@functools.cache
def _probe(module: str, hook: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        argv = [sys.executable, "-c", PROBE, module, hook]
        done = subprocess.run(argv, capture_output=True, text=True, cwd=folder, timeout=120, check=False)
    assert done.returncode == 0, f"the plugin cannot be imported:\n{done.stderr}"
    *printed, last = done.stdout.splitlines()
    report: dict[str, Any] = json.loads(last)
    return report | {"printed": "\n".join(printed) + done.stderr}


def _credentials(spec: Any) -> list[str]:
    """Names of the environment variables a spec says it looks at."""
    names = [*getattr(spec, "requires", ())]
    for option in getattr(spec, "auth", ()):
        names += getattr(option, "env", ())
    return [n for n in names if re.search(r"KEY|TOKEN|SECRET|PASSWORD", n)]
