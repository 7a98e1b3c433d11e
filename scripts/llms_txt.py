"""A hook of the documentation's build: `llms.txt`, the index of all pages for programs that read them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

_nav: Any = None
_summaries: dict[str, str] = {}


def on_nav(nav: Any, **_: Any) -> None:
    global _nav
    _nav = nav


def on_page_markdown(markdown: str, page: Any, **_: Any) -> None:
    _summaries[page.file.src_uri] = summary(markdown)


def on_post_build(config: Any) -> None:
    lines = [f"# {config['site_name']}", "", f"> {config['site_description']}", ""]
    lines += [line(page) for page in _nav.items if page.is_page]
    for section in (item for item in _nav.items if item.is_section):
        lines += ["", f"## {section.title}", "", *map(line, pages_of(section))]
    Path(config["site_dir"], "llms.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


def pages_of(section: Any) -> Iterable[Any]:
    for child in section.children:
        yield from [child] if child.is_page else pages_of(child)


def line(page: Any) -> str:
    return f"- [{page.title}]({page.canonical_url}): {_summaries[page.file.src_uri]}"


def summary(markdown: str) -> str:
    """Return the first sentence of the first paragraph, without markup."""
    paragraphs = [block.strip() for block in markdown.split("\n\n")]
    text = next((p for p in paragraphs if p and not p.startswith(("#", "```", "|", "- ", "<"))), "")
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text).replace("**", "").replace("\n", " ")
    return re.split(r"(?<=[.!?:]) (?=[A-Z`])", plain, maxsplit=1)[0].rstrip(":")
