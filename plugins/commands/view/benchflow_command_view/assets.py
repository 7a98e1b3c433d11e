"""The front end: plain files of the package, joined into one script so that a server and a single file run the same."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib.resources import files

__all__ = ["content_hash", "page", "script", "style"]

_MODULES = (
    *("dom", "format", "data", "charts", "virtual", "diff", "prose", "panels", "timeline", "steps", "drawer", "table"),
    *("jobs", "job", "grid", "compare", "traffic", "contested", "rollout", "live", "keys", "main"),
)
"""In the order in which they build on each other."""


def _read(name: str) -> str:
    return (files("benchflow_command_view") / "web" / name).read_text("utf-8")


@cache
def script() -> str:
    parts = "\n".join(f"// --- {name}.js\n{_read(f'js/{name}.js')}" for name in _MODULES)
    return f'(() => {{\n"use strict";\n{parts}\n}})();\n'


@cache
def style() -> str:
    return _read("style.css")


@cache
def page() -> str:
    """With `{{head}}` and `{{body}}` still to be filled in."""
    return _read("index.html")


def content_hash(text: str) -> str:
    """As a content security policy names what may run."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
