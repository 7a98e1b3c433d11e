"""Print the figures of the kernel that may only fall: its size, its cycles, what one small rollout crosses of it.

    python scripts/ratchets.py            print them beside those that are kept in tests/data/ratchets.json
    python scripts/ratchets.py --write    and keep the ones that fell

The kernel is `benchflow_core`.
"""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import grimp

ROOT = Path(__file__).parents[1]
KEPT = ROOT / "tests/data/ratchets.json"
CORE = ROOT / "benchflow_core"
NOT_SHIPPED = ("templates", "benchflow_testing_kit")
"""What `bench plugins new` writes, and the conformance kit: never counted, wherever they were."""
FEATURE_WORDS = re.compile("skill|learner|world|manifest|branch|gepa", re.IGNORECASE)
"""Words of features that a kernel has no business to know (design, "Three rules keep it there")."""

OTHER_MEANINGS = {"command", "git", "local", "modal", "processes", "script", "scripted", "view", "loops", "pi"}
"""Names of backends that are also ordinary words."""


def kernel_files() -> list[Path]:
    return sorted(CORE.rglob("*.py"))


def lines_of(files: list[Path]) -> int:
    return sum(len(path.read_text().splitlines()) for path in files)


def shipped_files() -> list[Path]:
    """Python of the kernel, the bundle and all plugin packages, without their tests."""
    packages = [path for folder in ("bundle", "plugins") for path in sorted((ROOT / folder).rglob("*.py"))]
    return kernel_files() + [p for p in packages if not {"tests", *NOT_SHIPPED}.intersection(p.relative_to(ROOT).parts)]


def functions_of(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def takes_rollout(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    arguments = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    notes = [ast.unparse(a.annotation).strip("'\"") for a in arguments if a.annotation is not None]
    return any(note in ("Rollout", "Rollout | None") for note in notes)


def imports_inside(tree: ast.AST) -> int:
    inside = {id(n) for f in functions_of(tree) for n in ast.walk(f) if isinstance(n, ast.Import | ast.ImportFrom)}
    return len(inside)


def cycles() -> list[set[str]]:
    """Groups of kernel modules that import each other, imports in functions and for type checking included."""
    graph = grimp.build_graph("benchflow_core", cache_dir=None)
    above = {module: graph.find_upstream_modules(module) for module in graph.modules}
    found = {frozenset({m, *(other for other in above[m] if m in above[other])}) for m in graph.modules}
    return [set(group) for group in found if len(group) > 1]


def backend_names() -> re.Pattern[str]:
    kinds = ("agents", "sandboxes", "services", "executors", "gateways", "sources", "verifiers")
    names = {folder.name for kind in kinds for folder in (ROOT / "plugins" / kind).iterdir() if folder.is_dir()}
    return re.compile(rf"\b({'|'.join(sorted(names - OTHER_MEANINGS))})\b", re.IGNORECASE)


def matching_lines(pattern: re.Pattern[str]) -> int:
    return sum(bool(pattern.search(line)) for path in kernel_files() for line in path.read_text().splitlines())


def distributions() -> list[Path]:
    return [ROOT, ROOT / "bundle", *(path.parent for path in ROOT.glob("plugins/*/*/pyproject.toml"))]


STEPS = {"kernel_lines": 200, "shipped_lines": 500, "hello_file_functions": 10, "lines_with_feature_words": 10}
"""Figures that are kept rounded up, so that a mended line elsewhere needs no edit of the kept ones."""


def rounded(name: str, value: int) -> int:
    step = STEPS.get(name, 1)
    return -(-value // step) * step


def figures_of_source() -> dict[str, int]:
    """Everything that is known without running anything."""
    files = kernel_files()
    trees = [ast.parse(path.read_text()) for path in files]
    groups = cycles()
    return {
        "kernel_lines": lines_of(files),
        "kernel_files": len(files),
        "shipped_lines": lines_of(shipped_files()),
        "functions_taking_rollout": sum(takes_rollout(f) for tree in trees for f in functions_of(tree)),
        "import_cycles": len(groups),
        "modules_in_cycles": sum(len(group) for group in groups),
        "imports_in_functions": sum(imports_inside(tree) for tree in trees),
        "lines_with_feature_words": matching_lines(FEATURE_WORDS),
        "lines_with_backend_names": matching_lines(backend_names()),
    }


TRACED = """
import sys, threading
from pathlib import Path
core = sys.argv.pop(1)
seen = set()
def note(frame, event, _):
    if event == "call":
        seen.add(frame.f_code)
threading.setprofile(note)
sys.setprofile(note)
from benchflow_core.cli.main import main
code = main(sys.argv[2:])
sys.setprofile(None)
threading.setprofile(None)
def counts(c):  # a class body has no fast locals; a module and a comprehension have a name in angle brackets
    return c.co_filename.startswith(f"{core}/") and c.co_flags & 1 and c.co_name[0] != "<"
called = sorted(f"{c.co_filename[len(core) + 1:]}:{c.co_firstlineno}:{c.co_name}" for c in seen if counts(c))
Path(sys.argv[1]).write_text("\\n".join(called))
sys.exit(code)
"""


def crossed(folder: Path) -> list[str]:
    """The functions of the kernel that `bench eval create` calls for one task: `file:line:name`, in no order."""
    called = folder / "called.txt"
    task = ROOT / "examples/tasks/hello-file"
    command = ["eval", "create", "-t", str(task), "-a", "oracle", "--sandbox", "local", "-o", str(folder / "jobs")]
    env = {**os.environ, "BENCHFLOW_CACHE": str(folder / "cache")}
    subprocess.run(
        [sys.executable, "-c", TRACED, str(CORE), str(called), *command], env=env, check=True, stdout=subprocess.DEVNULL
    )
    return called.read_text().splitlines()


def figures_of_a_run(folder: Path) -> dict[str, int]:
    functions = crossed(folder)
    return {
        "hello_file_modules": len({line.partition(":")[0] for line in functions}),
        "hello_file_functions": len(functions),
    }


def figures(folder: Path) -> dict[str, int]:
    """All of them; the rollout is run in a folder that is there and empty."""
    return figures_of_source() | figures_of_a_run(folder)


def kept() -> dict[str, int]:
    found: dict[str, int] = json.loads(KEPT.read_text())
    return found


def table(now: dict[str, int], ceilings: dict[str, int]) -> str:
    return "\n".join(f"{name:28} {value:>8,}   may be {ceilings[name]:>8,}" for name, value in now.items())


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        now = figures(Path(temporary))
    print(table(now, kept()))
    if "--write" in sys.argv[1:]:
        lower = {name: min(ceiling, rounded(name, now[name])) for name, ceiling in kept().items()}
        KEPT.write_text(json.dumps(lower, indent=2) + "\n")
