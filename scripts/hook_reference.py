"""Writes docs/plugins/hooks.md from the hook specifications and the contracts. `--check` only compares."""

from __future__ import annotations

import ast
import inspect
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

from benchflow_core import contracts, hookspecs

PAGE = Path(__file__).parents[1] / "docs" / "plugins" / "hooks.md"
CONTRACTS = Path(inspect.getfile(contracts)).parent

HOMES = {
    "agent": "agents",
    "sandbox": "sandboxes",
    "adapter": "adapters",
    "environment": "environments",
    "service": "environments",
    "verifier": "verifiers",
    "gateway": "gateways",
    "driver": "drivers",
    "source": "sources",
    "executor": "executors",
    "exporter": "exporters",
    "feature": "features",
    "command": "commands",
    "observer": "events",
}
"""Kind to the module of `benchflow_core.contracts` that holds its types."""

SHARED = {
    "boxes": "What sandboxes are asked for and answer",
    "sessions": "Sessions with an agent's process",
    "isolation": "Isolation policies, which features bring",
    "logs": "Logs",
    "tasks": "The task",
    "scenes": "Scenes, and the steps they become",
    "settings": "What the annotations of a setting say",
    "settings_model": "Models of settings",
    "results": "Results to read",
    "panels": "Panels",
    "common": "Shared types",
}
"""Modules of the contracts that belong to no kind, and their headings."""

EVERYWHERE = {
    "summary": "One line for people, shown by `bench plugins list`.",
    "check": "Lines for `bench plugins doctor`; never the value of a credential.",
    "available": "Whether it can be used here and now; cheap: no network, no SDK import.",
    "layers": "What it needs installed in the box: pinned, cached, shown read-only.",
    "runtimes": "Language runtimes it needs in the box.",
    "default_rank": "Lower is preferred when the user names none; `None` is never chosen by itself.",
    "needs": "Sandbox capabilities without which it cannot work.",
    "needs_model": "It calls a model, through the gateway.",
    "rank": "Where several would serve, the lower wins.",
}
"""Fields that mean the same in every spec, where the spec itself says nothing."""

MEANINGS = {
    "AgentSpec.auth": "Ways to be authorised, best first.",
    "AgentSpec.default_model": "Used when the user names no model.",
    "AgentSpec.model_option": "The session's config option that chooses the model.",
    "AgentSpec.effort_option": "The session's config option for the reasoning effort; `None` where there is none.",
    "AgentSpec.web_tools_can_be_disabled": "It obeys `AgentContext.web_tools`.",
    "AgentSpec.handshake_timeout": "Seconds for each request up to the first prompt.",
    "AgentSpec.homepage": "Where people read more.",
    "SandboxSpec.open": "Opens a provider for one job; the SDK is imported here. Called off the event loop.",
    "SandboxSpec.reap": "Removes what a lease names, whoever left it; safe to call again.",
    "SandboxSpec.max_concurrency": "Boxes at a time, where the backend has a limit.",
    "AdapterSpec.detect": "Whether a folder is of this format; false for anything else, never raises.",
    "EnvironmentSpec.state_backends": "How the state of a world is captured and put back.",
    "ServiceSpec.command": "The command line, made purely; it listens on the port it is given.",
    "ServiceSpec.port": "The port it has when nothing else is asked for.",
    "ServiceSpec.health_path": "Answers 200 once the service is ready.",
    "ServiceSpec.ready_timeout": "Seconds until it must be.",
    "GatewaySpec.open": "Opens a gateway for one job. Called off the event loop.",
    "DriverSpec.drive": "Plays one episode: prompts, looks, prompts again. Returns when there is nothing more to say.",
    "SourceSpec.matches": "Whether it serves a URI; false for anything else, never raises.",
    "ExporterSpec.options": "Names and defaults of what the user may set.",
    "ObserverSpec.on_event": "Gets each event in order, off the event loop; what it raises is one warning.",
    "ObserverSpec.meta": "The observer's own; the core only carries it.",
}
"""What the contract's names say already, for readers of this page."""

HEAD = """# Hook reference

Generated from `benchflow_core/hookspecs.py` and `benchflow_core/contracts/` by `scripts/hook_reference.py`; a test
compares them. A plugin implements the hook of each kind it serves, in the module that its entry point names. A hook
takes no argument and returns one spec, the same on every call.

| kind | entry-point group | hook | spec |
|---|---|---|---|
"""


def page() -> str:
    rows = [
        f"| [{kind}](#{kind}) | `{group}` | `benchflow_{kind}` | `{spec_name(kind)}` |"
        for kind, group in hookspecs.GROUPS.items()
    ]
    parts = [HEAD + "\n".join(rows) + "\n"]
    shown: set[str] = set()
    for kind in hookspecs.GROUPS:
        module = HOMES[kind]
        parts.append(kind_section(kind))
        parts += [section(cls) for cls in helpers(module) if cls.name not in shown]
        shown |= {cls.name for cls in helpers(module)}
    for module, title in SHARED.items():
        parts.append(f"## {title}\n\n{docstring(tree(module))}\n")
        parts += [section(cls) for cls in helpers(module)]
    return "\n".join(parts)


def spec_name(kind: str) -> str:
    return f"{kind.capitalize()}Spec"


def kind_section(kind: str) -> str:
    hook = getattr(hookspecs, f"benchflow_{kind}")
    spec = next(cls for cls in classes(HOMES[kind]) if cls.name == spec_name(kind))
    text, _, example = docstring(spec).partition("Example::")
    lines = [
        f"## {kind}",
        "",
        f"```python\n{signature(kind)}\n```",
        "",
        inspect.getdoc(hook) or "",
        "",
        f"Entry-point group `{hookspecs.GROUPS[kind]}`. A package to start from: `bench plugins new {kind} NAME`.",
        "",
        f"```python\n{textwrap.dedent(example).strip()}\n```",
        "",
        f"### {spec.name}",
        "",
        text.strip(),
        "",
        fields_table(spec),
    ]
    return "\n".join(lines)


def signature(kind: str) -> str:
    """As it stands in the source."""
    hook = getattr(hookspecs, f"benchflow_{kind}")
    return f"def {hook.__name__}{inspect.signature(hook)}".replace("'", "")


def section(cls: ast.ClassDef) -> str:
    body = [f"### {cls.name}", "", docstring(cls).partition("Example::")[0].strip(), ""]
    if is_enum(cls):
        body.append(values_table(cls))
    elif any(isinstance(node, ast.AnnAssign) for node in cls.body):
        body.append(fields_table(cls))
    methods = [method_text(node) for node in cls.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return "\n".join([*body, *methods])


def is_enum(cls: ast.ClassDef) -> bool:
    return any(isinstance(base, ast.Name) and base.id.endswith("Enum") for base in cls.bases)


def fields_table(cls: ast.ClassDef) -> str:
    rows = ["| field | type | default | meaning |", "|---|---|---|---|"]
    for node, text in documented(cls, ast.AnnAssign):
        name = ast.unparse(node.target)
        default = f"`{cell(default_text(node.value))}`" if node.value is not None else "required"
        known = MEANINGS.get(f"{cls.name}.{name}") or (EVERYWHERE.get(name) if cls.name.endswith("Spec") else "")
        meaning = cell(text or known or "")
        rows.append(f"| `{name}` | `{cell(ast.unparse(node.annotation))}` | {default} | {meaning} |")
    return "\n".join(rows) + "\n"


def values_table(cls: ast.ClassDef) -> str:
    rows = ["| name | value | meaning |", "|---|---|---|"]
    for node, text in documented(cls, ast.Assign):
        name, value = ast.unparse(node.targets[0]), ast.literal_eval(node.value)
        rows.append(f"| `{name}` | `{value}` | {cell(text)} |")
    return "\n".join(rows) + "\n"


def default_text(node: ast.expr) -> str:
    """`field(default_factory=dict)` reads better as what it makes."""
    if isinstance(node, ast.Call) and ast.unparse(node.func) == "field":
        made = {k.arg: ast.unparse(k.value) for k in node.keywords}
        if "default_factory" in made:
            return {"dict": "{}", "tuple": "()"}.get(made["default_factory"], f"{made['default_factory']}()")
        return "required"
    return ast.unparse(node)


def documented(cls: ast.ClassDef, kind: type) -> Iterator[tuple[ast.AnnAssign | ast.Assign, str]]:
    """Each field with the string below it."""
    for node, after in zip(cls.body, [*cls.body[1:], None], strict=True):
        if isinstance(node, kind) and not ast.unparse(node).startswith("_"):
            text = ""
            if (
                isinstance(after, ast.Expr)
                and isinstance(after.value, ast.Constant)
                and isinstance(after.value.value, str)
            ):
                text = inspect.cleandoc(after.value.value)
            yield node, text


def method_text(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    prefix = "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
    returns = f" -> {ast.unparse(node.returns)}" if node.returns is not None else ""
    declared = f"{prefix} {node.name}({ast.unparse(node.args)}){returns}"
    if any(ast.unparse(d) == "property" for d in node.decorator_list):
        declared = f"@property\n{declared}"
    text = docstring(node)
    return f"```python\n{declared}\n```\n" + (f"\n{text}\n" if text else "")


def helpers(module: str) -> list[ast.ClassDef]:
    """The public classes of a contract that are not specs themselves."""
    return [cls for cls in classes(module) if not cls.name.endswith("Spec") and not cls.name.startswith("_")]


def classes(module: str) -> list[ast.ClassDef]:
    return [node for node in tree(module).body if isinstance(node, ast.ClassDef)]


def tree(module: str) -> ast.Module:
    return ast.parse((CONTRACTS / f"{module}.py").read_text("utf-8"))


def docstring(node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    return ast.get_docstring(node) or ""


def cell(text: str) -> str:
    return text.replace("\n", " ").replace("|", "\\|")


def main() -> int:
    text = page()
    fresh = PAGE.exists() and PAGE.read_text("utf-8") == text
    if "--check" in sys.argv:
        if not fresh:
            print(f"{PAGE.relative_to(PAGE.parents[2])} is stale; run: python scripts/hook_reference.py")
        return int(not fresh)
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
