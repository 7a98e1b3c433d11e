"""The tables of docs/services: every method of the real API, and whether the service answers it.

python plugins/services/claw-kit/scripts/tables.py          writes them
python plugins/services/claw-kit/scripts/tables.py --check  says what is out of date, and ends with 1
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchflow_claw_kit.effects import STATE, effects_in
from benchflow_claw_kit.testing import document, method_table

ROOT = Path(__file__).parents[4]
BEGIN, END = "<!-- methods: made by plugins/services/claw-kit/scripts/tables.py -->", "<!-- end of methods -->"
PAGES = {
    "gmail": ("gmail", "v1"),
    "gcal": ("calendar", "v3"),
    "gdoc": ("docs", "v1"),
    "gdrive": ("drive", "v3"),
    "slack": None,
}
"""Service to its discovery document. Its `coverage` module may have NOTES (why a method does not answer), UNSEEN (what
answers and no other method can show, and why), more() (what stands after the methods) or, without a document,
table()."""
PREFIXES = {"gmail": "gmail.users.", "gcal": "calendar.", "gdoc": "docs.", "gdrive": "drive.", "slack": ""}


def methods(node: dict[str, Any]) -> list[dict[str, Any]]:
    found = list(node.get("methods", {}).values())
    for child in node.get("resources", {}).values():
        found += methods(child)
    return found


def coverage(service: str) -> Any:
    name = f"benchflow_service_claw_{service}.coverage"
    return import_module(name) if find_spec(name) else None


def shown(service: str) -> dict[str, str]:
    """Method to where the tests see its effect, in the page's words."""
    found = effects_in(ROOT / "plugins" / "services" / f"claw-{service}" / "tests")
    prefix = PREFIXES[service]
    words = {
        name if name.startswith("#") else prefix + name: "the state" if other == STATE else f"`{other.lstrip('#')}`"
        for name, (other, _) in found.items()
    }
    return {**words, **getattr(coverage(service), "UNSEEN", {})}


def answering(service: str) -> set[str]:
    """Every method that answers, and every request type of Docs as `#name`."""
    if service == "slack":
        return set(coverage(service).answered())
    methods = set(import_module(f"benchflow_service_claw_{service}.service").SERVICE.api.methods)
    return methods | {"#" + name for name in getattr(coverage(service), "REQUESTS", ())}


def table(service: str) -> str:
    own = coverage(service)
    source = PAGES[service]
    if source is None:
        return str(own.table(shown(service)))
    doc = document(*source)
    answered = import_module(f"benchflow_service_claw_{service}.service").SERVICE.api.methods
    facts = {
        method["id"]: {
            "verb": method["httpMethod"],
            "path": "/" + doc["servicePath"] + method.get("flatPath", method["path"]),
        }
        for method in methods(doc)
    }
    made = f"From the discovery document of revision {doc['revision']}: "
    made += method_table(facts, answered, getattr(own, "NOTES", {}), shown(service)).rstrip()
    return f"{made}\n\n{own.more(doc['schemas'], shown(service))}" if hasattr(own, "more") else made


def page(service: str) -> tuple[Path, str, str]:
    path = ROOT / "docs" / "services" / f"{service}.md"
    text = path.read_text()
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return path, text, f"{before}{BEGIN}\n{table(service)}\n{END}{after}"


def main() -> int:
    stale = 0
    for service in PAGES:
        path, old, new = page(service)
        if old == new:
            continue
        stale = 1
        print(
            f"{path.relative_to(ROOT)} is out of date" if "--check" in sys.argv else f"wrote {path.relative_to(ROOT)}"
        )
        if "--check" not in sys.argv:
            path.write_text(new)
    return stale if "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
