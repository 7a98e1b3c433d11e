"""The sandbox suite of the core, on the engine that answers here."""

from __future__ import annotations

import re
import urllib.request
from functools import cache
from pathlib import Path

import pytest

from benchflow_core.testing.sandbox import SandboxConformance

pytestmark = pytest.mark.docker


@cache
def reachable_outside() -> str | None:
    """A server outside this machine that answers: one of those it installs its own packages from."""
    lists = [Path("/etc/apt/sources.list"), *sorted(Path("/etc/apt/sources.list.d").glob("*"))]
    text = "\n".join(path.read_text() for path in lists if path.is_file())
    sources = re.findall(r"^[^#\n]*?(http://[^\s\]]+)", text, re.MULTILINE)
    for url in (f"{source.rstrip('/')}/{name}" for source in sources for name in ("README", "dists/")):
        try:
            with urllib.request.urlopen(url, timeout=10):
                return url
        except OSError:
            continue
    return None


class TestDocker(SandboxConformance):
    @pytest.fixture
    def plugin(self) -> str:
        return "docker"

    @pytest.fixture
    def public_url(self) -> str | None:
        return reachable_outside()
