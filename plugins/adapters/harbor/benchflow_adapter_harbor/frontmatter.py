"""Documents with YAML frontmatter: `task.md` and `verifier.md`, with the line of every key."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from benchflow_adapter_harbor.bounds import MAX_DEPTH, refuse_unbounded
from benchflow_adapter_harbor.files import problem
from benchflow_adapter_harbor.report import Where
from benchflow_core.contracts.bounded_yaml import lines_of
from benchflow_core.contracts.quick import dataclass

_SAFE_LENGTH = 4096
"""Characters in which no nesting fits that the C composer cannot take."""


@dataclass(frozen=True, slots=True)
class MarkdownDocument:
    """A file split at its frontmatter."""

    file: Path
    head: str
    data: dict[str, Any]
    body: str
    body_line: int
    """The line the body starts on."""

    def line_of(self, where: Where) -> int | None:
        """Return the line of a key, or of the nearest one around it."""
        import yaml

        lines = lines_of(yaml.compose(self.head, Loader=yaml.SafeLoader))
        while where and where not in lines:
            where = where[:-1]
        return lines[where] + 1 if where else None  # the frontmatter starts after its fence


def split_document(text: str, file: Path) -> MarkdownDocument:
    """Frontmatter between two `---` lines, then the body."""
    text = text.replace("\r\n", "\n")
    lines = text.split("\n")
    if lines[0].strip() != "---":
        what = "must start with YAML frontmatter: a line '---', the settings, and another line '---'"
        raise problem(file, what, line=1, code="syntax")
    end = next((i for i, line in enumerate(lines[1:], 1) if line.strip() == "---"), None)
    if end is None:
        raise problem(file, "has frontmatter without a closing line '---'", line=1, code="syntax")
    head = "\n".join(lines[1:end]) + "\n"
    rest = lines[end + 1 :]
    blank = next((i for i, line in enumerate(rest) if line), len(rest))
    return MarkdownDocument(file, head, _parse_yaml(head, file), "\n".join(rest[blank:]), end + 2 + blank)


def _parse_yaml(text: str, file: Path) -> dict[str, Any]:
    import yaml

    try:
        if len(text) > _SAFE_LENGTH:
            _refuse_depth(text, file)
        data = yaml.load(text, Loader=_loader())
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 2 if mark else None
        what = "; ".join(part for part in (error.context, error.problem) if part)
        shown = text.split("\n")[mark.line].strip()[:80] if mark and mark.line < text.count("\n") else ""
        what = f"is not valid YAML: {what}" + (f", in: {shown}" if shown else "")
        raise problem(file, what, line=line, code="syntax") from error
    except (yaml.YAMLError, ValueError, TypeError, RecursionError) as error:
        raise problem(file, f"is not valid YAML: {error}", code="syntax") from error
    if data is None:
        return {}
    if not isinstance(data, dict):
        raise problem(file, "must have 'key: value' settings as its frontmatter", line=2, code="syntax")
    refuse_unbounded(data, file)
    return data


def _refuse_depth(text: str, file: Path) -> None:
    """The C composer recurses without a guard, so depth is counted on the event stream first."""
    import yaml

    depth = 0
    for event in yaml.parse(text, Loader=_loader()):
        if isinstance(event, yaml.MappingStartEvent | yaml.SequenceStartEvent):
            depth += 1
            if depth > MAX_DEPTH:
                raise problem(file, f"is nested more than {MAX_DEPTH} levels deep", code="syntax")
        elif isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent):
            depth -= 1


@cache
def _loader() -> Any:
    """The safe loader, in C where there is one, refusing a key written twice instead of keeping the last."""
    import yaml

    class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
        def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
            seen = set()
            for key, _ in node.value:
                if isinstance(key, yaml.ScalarNode) and key.value != "<<":
                    if key.value in seen:
                        twice = f"key '{key.value}' is there twice"
                        raise yaml.constructor.ConstructorError(None, None, twice, key.start_mark)
                    seen.add(key.value)
            made: dict[Any, Any] = super().construct_mapping(node, deep=deep)
            return made

    return Loader
