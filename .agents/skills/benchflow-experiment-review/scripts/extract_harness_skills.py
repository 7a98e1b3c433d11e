#!/usr/bin/env python3
"""Which skills a harness offered to its model, and whether a task's own are among them.

    extract_harness_skills.py LLM_TRAJECTORY [--task-skill NAME]... [--json]

Reads `trajectory/llm_trajectory.jsonl`. A skill counts as loaded when a request to the model offers it (a list, the
description of a tool, the path of its SKILL.md) or a call loads it. Exit code 0, or 2 when the file cannot be read.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

NAME = r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}"
OFFERED = (
    re.compile(rf"skills/({NAME})/SKILL\.md"),
    re.compile(rf"<skill>\s*<name>\s*({NAME})\s*</name>"),
    re.compile(rf'<skill\s+name="({NAME})"'),
)
LISTED = re.compile(r"^\s*[-*] \**([a-z0-9][a-z0-9-]{0,63})\**: ", re.MULTILINE)
"""A line of a list; only below a word about skills, and only what can be a skill's name."""
TOOLS = {"skill", "activate_skill", "invoke_skill", "load_skill", "use_skill"}
ARGUMENTS = ("skill", "name", "skill_name", "command")


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trajectory", type=Path)
    parser.add_argument("--task-skill", action="append", default=[], metavar="NAME", help="repeatable")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args(argv)
    try:
        exchanges = list(read(given.trajectory))
    except (OSError, ValueError) as error:
        print(f"error: {given.trajectory} cannot be read: {error}", file=sys.stderr)
        return 2
    found = extract(exchanges, given.task_skill)
    if given.json:
        print(json.dumps(found, indent=2))
    else:
        for name, value in found.items():
            print(f"{name}: {', '.join(value) or '-' if isinstance(value, list) else value}")
    return 0


def read(path: Path) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(path.read_text("utf-8", "replace").splitlines(), 1):
        if line.strip():
            value = json.loads(line)
            if not isinstance(value, dict):
                raise ValueError(f"line {number} is no exchange")
            yield value


def extract(exchanges: list[dict[str, Any]], task_skills: list[str]) -> dict[str, Any]:
    offered: set[str] = set()
    called: list[str] = []
    for exchange in exchanges:
        body = (exchange.get("request") or {}).get("body")
        for text in texts(body):
            offered |= names_in(text)
        called += calls((exchange.get("response") or {}).get("body"))
    loaded = [name for name in task_skills if name in offered or name in called]
    return {
        "exchanges": len(exchanges),
        "harness_skills": sorted((offered | set(called)) - set(task_skills)),
        "task_skills": sorted(loaded),
        "task_skills_loading": int(bool(loaded)),
        "skill_calls": len(called),
    }


def names_in(text: str) -> set[str]:
    found = {name for pattern in OFFERED for name in pattern.findall(text)}
    for part in re.split(r"(?i)\bskills\b", text)[1:]:
        block = re.match(r"[^\n]*\n(?:(?:[ \t]*[-*] .*|[ \t]+\S.*|[ \t]*)(?:\n|$))*", part)
        found |= set(LISTED.findall(block.group(0))) if block else set()
    return found


def texts(value: Any) -> Iterator[str]:
    """Every text of a request, wherever it stands."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from texts(item)


def calls(value: Any) -> list[str]:
    """Skills that an answer asks for, in whichever API's words."""
    found: list[str] = []
    if isinstance(value, dict):
        inner = value.get("function") if isinstance(value.get("function"), dict) else value
        if str(inner.get("name", "")).lower() in TOOLS:
            given = next((inner[k] for k in ("input", "arguments", "args") if inner.get(k)), {})
            if isinstance(given, str):
                try:
                    given = json.loads(given)
                except ValueError:
                    given = {}
            found += [str(given[k]) for k in ARGUMENTS if isinstance(given, dict) and given.get(k)][:1]
            return found
        for item in value.values():
            found += calls(item)
    elif isinstance(value, list):
        for item in value:
            found += calls(item)
    return found


if __name__ == "__main__":
    sys.exit(main())
