"""A public class name means one thing in the whole repository: the list of those that mean two may only get shorter."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[1]
KEPT = ROOT / "tests/data/shared_class_names.txt"
NOT_OURS = {"tests", "templates", ".venv", "node_modules"}
"""Tests, what `bench plugins new` writes, and what is installed."""


def package_of(path: Path) -> str:
    parts = path.relative_to(ROOT).parts
    return "/".join(parts[:3]) if parts[0] == "plugins" else parts[0]


def homes() -> dict[str, set[str]]:
    """Public class names that stand at the top of modules in more than one package, with those packages."""
    found: dict[str, set[str]] = defaultdict(set)
    for top in ("benchflow_core", "bundle", "plugins"):
        for path in sorted((ROOT / top).rglob("*.py")):
            if NOT_OURS.intersection(path.relative_to(ROOT).parts):
                continue
            for node in ast.parse(path.read_text()).body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    found[node.name].add(package_of(path))
    return {name: packages for name, packages in found.items() if len(packages) > 1}


def test_no_class_name_is_used_in_one_more_package():
    now, kept = homes(), set(KEPT.read_text().split())
    for name, packages in sorted(now.items()):
        print(f"{name:20} {', '.join(sorted(packages))}")
    print(
        f"{len(now)} names, may be {len(kept)}; not shared any more: {', '.join(sorted(kept - now.keys())) or 'none'}"
    )
    new = {name: sorted(packages) for name, packages in now.items() if name not in kept}
    assert not new, f"give one of each another name, one that says what it is in its package: {new}"
