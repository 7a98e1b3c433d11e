"""The seams, checked in the source: who may import whom, and that no backend is known by name."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path

import pytest
from benchflow_testing_kit.imports import forbidden_imports, imported_modules

from benchflow_core.hookspecs import GROUPS

ROOT = Path(__file__).parents[1]
CORE = ROOT / "benchflow_core"
KIT = ROOT / "plugins/testing/kit/benchflow_testing_kit"
PLUGINS = [path for path in sorted(ROOT.glob("plugins/*/*/benchflow_*")) if path != KIT]
"""The kit tests plugins against the core itself, so it alone may import all of it."""

LAYERS = (
    {"cli", "worker"},
    {"evaluation"},
    {"rollout"},
    {"verify"},
    {"gateway"},
    {"task"},
    {"results"},
    {"settings"},
    {"plugins"},
    {"contracts", "hookspecs"},
    {"errors", "dotenv", "lazy", "quick", "testing", "__init__"},
)
"""Design §3, top to bottom: a module imports only from its own layer and those below."""

OTHER_MEANINGS = {
    "claude": "the beginning of a model's name",
    "environment": "the older word for a sandbox, in settings",
    "gemini": "a model API",
    "isolation": "the setting that names a verifier policy",
    "metrics": "an older spelling of eval metrics, and its place in the help",
    "scenes": "the section of a config or a task that lists them",
    "learner": "a command: it is listed with the package that brings it",
    "skills": "a command, likewise; and a key of locks",
    "world": "a key of stored results, which a feature of that name writes",
    "script": "the file name of a test script, in the verifier's guard",
}
"""Names of plugins that are also words of ours, and what the word stands for in the core."""


def sources(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.rglob("*.py")) if "templates" not in path.parts]


def layer(name: str) -> int:
    for number, names in enumerate(LAYERS):
        if name in names:
            return number
    raise AssertionError(
        f"benchflow_core/{name} has no place in the layers: add it to LAYERS and to the architecture page"
    )


@pytest.mark.parametrize("package", PLUGINS, ids=lambda path: path.name)
def test_plugins_import_only_the_public_core(package):
    assert [line for file in sources(package) for line in forbidden_imports(file)] == []


def entry_modules() -> Iterator[tuple[str, Path]]:
    for group in GROUPS.values():
        for point in entry_points(group=group):
            for parent in (*PLUGINS, CORE):
                path = parent.parent / Path(*point.module.split(".")).with_suffix(".py")
                if parent.name == point.module.partition(".")[0] and path.exists():
                    yield point.name, path


@pytest.mark.parametrize(("name", "path"), sorted(set(entry_modules())), ids=lambda value: Path(value).name)
def test_entry_point_modules_are_featherweight(name, path):
    """At the top: the standard library, the hook markers, the contracts, what makes layers and specs; nothing else."""
    ours = {"benchflow_core.hookspecs", "benchflow_core.contracts", "benchflow_layers", "benchflow_claw_kit.spec"}
    light = {*sys.stdlib_module_names, *ours}
    heavy = []
    for node in ast.parse(path.read_text()).body:
        modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            modules = [node.module or "."]
        heavy += [m for m in modules if m.partition(".")[0] not in light and ".".join(m.split(".")[:2]) not in light]
    assert heavy == [], f"{path.relative_to(ROOT)} imports {heavy} at the top"


@pytest.mark.parametrize("path", sources(CORE), ids=lambda path: str(path.relative_to(CORE)))
def test_core_modules_import_only_from_below(path):
    own = layer(path.relative_to(CORE).parts[0].removesuffix(".py"))
    upward = []
    for line, module in imported_modules(path):
        parts = module.split(".")
        if parts[0] == "benchflow_core" and len(parts) > 1:
            target = parts[1] if (CORE / parts[1]).is_dir() or (CORE / f"{parts[1]}.py").exists() else "__init__"
            if layer(target) < own:
                upward.append(f"line {line}: {module}")
    assert upward == []


def names_in_use() -> set[str]:
    return {point.name for group in GROUPS.values() for point in entry_points(group=group)} - OTHER_MEANINGS.keys()


def test_no_core_module_knows_a_plugin_by_name():
    names = names_in_use()
    assert names, "no plugin is installed: nothing to look for"
    known = []
    for path in sources(CORE):
        tree = ast.parse(path.read_text())
        prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        known += [
            f"{path.relative_to(ROOT)}:{node.lineno}: {node.value!r}"
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant) and id(node) not in prose and node.value in names
        ]
    assert known == [], "specs carry what the core needs to choose; a name is for the user to type"


def compared(tree: ast.AST) -> Iterator[ast.Constant]:
    """Text that something is compared with: `==`, `in`, `match`, `startswith`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            roots = [node.left, *node.comparators]
        elif isinstance(node, ast.MatchValue):
            roots = [node.value]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and "with" in node.func.attr:
            roots = node.args
        else:
            continue
        yield from (n for root in roots for n in ast.walk(root) if isinstance(n, ast.Constant))


def test_words_with_another_meaning_are_not_names_of_plugins_either():
    """`scenes` is compared as a key of a mapping (`"scenes" in data`), never with what a plugin is called."""
    suspicious = []
    for path in sources(CORE):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Compare):
                continue
            named = any(isinstance(n, ast.Attribute) and n.attr in ("name", "agent", "sandbox") for n in ast.walk(node))
            if named and OTHER_MEANINGS.keys() & {c.value for c in compared(node) if isinstance(c.value, str)}:
                suspicious.append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert suspicious == []
