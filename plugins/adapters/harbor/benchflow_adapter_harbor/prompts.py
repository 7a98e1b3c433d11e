"""The body of a `task.md`: the prompt, and the sections for roles, scenes and a simulated user."""

from __future__ import annotations

import re
from dataclasses import field
from pathlib import Path

from benchflow_adapter_harbor.files import problem, read_text
from benchflow_adapter_harbor.frontmatter import MarkdownDocument
from benchflow_core.contracts.quick import dataclass

_HEADING = r"##[ \t]+(prompt|role:[A-Za-z0-9_.-]+|scene:[A-Za-z0-9_.-]+|user-persona)[ \t]*"
_SECTION = re.compile(f"^{_HEADING}$", re.IGNORECASE | re.MULTILINE)
_ESCAPED = re.compile(rf"^\\({_HEADING})$", re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True)
class Prompts:
    """What a task says, to whom."""

    base: str
    roles: dict[str, str] = field(default_factory=dict)
    scenes: dict[str, str] = field(default_factory=dict)
    persona: str | None = None


def read_prompts(document: MarkdownDocument, root: Path) -> Prompts:
    """Sections of the body; files under `prompts/` win over them."""
    sections = _sections(document)
    found = Prompts(base=sections.pop("prompt", sections.pop("", "")), persona=sections.pop("user-persona", None))
    persona = found.persona
    for key, text in sections.items():
        kind, _, name = key.partition(":")
        if name:
            (found.roles if kind == "role" else found.scenes)[name] = text
    for file in sorted((root / "prompts").glob("*.md")):
        stem, text = file.name.removesuffix(".md"), read_text(file, root).strip()
        if stem == "user-persona":
            persona = text
        elif stem.startswith("role."):
            found.roles[stem.removeprefix("role.")] = text
        elif stem.startswith("scene."):
            found.scenes[stem.removeprefix("scene.")] = text
    return Prompts(found.base, found.roles, found.scenes, persona)


def _sections(document: MarkdownDocument) -> dict[str, str]:
    """Heading to text; the text before the first heading is under the empty name."""
    body = document.body
    marks = list(_SECTION.finditer(body))
    first = marks[0].start() if marks else len(body)
    found = {"": _unescape(body[:first])}
    ends = [mark.start() for mark in marks[1:]] + [len(body)]
    for mark, end in zip(marks, ends, strict=False):
        kind, colon, name = mark[1].partition(":")
        key = f"{kind.lower()}{colon}{name}"
        if key in found:
            line = document.body_line + body.count("\n", 0, mark.start())
            raise problem(
                document.file, f"has two sections '## {key}'", line=line, remedy="Join them.", code="duplicate"
            )
        found[key] = _unescape(body[mark.end() : end])
    return found


def _unescape(text: str) -> str:
    return _ESCAPED.sub(r"\1", text.strip())


def escape_headings(text: str) -> str:
    """A prompt that itself has such headings, so that they stay text in a `task.md`."""
    return _SECTION.sub(lambda mark: "\\" + mark[0], text)
