"""The plugin: Harvey LAB's harness from its release, told over ACP by a small program of ours."""

from __future__ import annotations

from pathlib import Path

from benchflow_layers import pip_layers

from benchflow_core.contracts import AgentContext, AgentOption, AgentSpec, Check, Launch, Layer
from benchflow_core.hookspecs import hookimpl

VERSION = "1.2.0"
PREFIX = "/opt/benchflow/agents/harvey-lab"
_HOMEPAGE = "https://github.com/harveyai/harvey-labs"
# Their releases are never replaced. The package of this name on PyPI is somebody else's.
_RELEASE = f"lab-core @ {_HOMEPAGE}/releases/download/v{VERSION}/lab_core-{VERSION}-py3-none-any.whl\n"
_PARSE_DOC = f"""#!/bin/sh
exec {PREFIX}/bin/python -m lab_core.sandbox.parsers.parse_doc "$@"
"""
_PRINT_VERSION = "import importlib.metadata, lab_core.harness.run; print(importlib.metadata.version('lab-core'))"
_CHECK = (VERSION, f"{PREFIX}/bin/python", "-c", _PRINT_VERSION)
_PROVIDERS = {"messages": "anthropic", "responses": "openai", "gemini": "google"}
"""Wire to the harness's word for who speaks it."""


@hookimpl
def benchflow_agent() -> AgentSpec:
    return AgentSpec(
        summary=f"Harvey LAB's own agent loop {VERSION}: its tools, its system prompt, its skills",
        name="harvey-lab-harness",
        prepare=prepare,
        takes_model=True,
        options={
            "output": AgentOption("The folder of deliverables, below the working directory."),
            "max-turns": AgentOption("Most turns of the loop: 200.", parse=int),
            "shell-timeout": AgentOption("Seconds of one shell command: 60.", parse=int),
        },
        layers=layers(_RELEASE.encode()),
        wires=("messages", "responses", "gemini"),
        mcp="",
        handshake_timeout=120.0,
        version=VERSION,
        reports_version=True,
        check=check,
        homepage=_HOMEPAGE,
    )


def check() -> list[Check]:
    """What our tests cannot say."""
    return [
        Check(
            "tried",
            "warn",
            f"lab-core {VERSION} is a release on GitHub and on no package index: our tests run a stand-in for it",
            "Try the real one here: bench agent check harvey-lab-harness",
        )
    ]


def layers(harness: bytes) -> tuple[Layer, Layer]:
    """`harness` is a line of requirements: where `lab-core` comes from."""
    here = Path(__file__).parent
    files = {"harness.py": (here / "harness.py").read_bytes(), "tools/parse-doc": _PARSE_DOC.encode()}
    requirements = (here / "requirements.txt").read_bytes() + harness
    return pip_layers(PREFIX, f"lab-core@{VERSION}", requirements, files=files, check=_CHECK)


def prepare(context: AgentContext) -> Launch:
    import json

    endpoint = context.endpoint
    env: dict[str, str] = {}
    model = context.model or ""
    if endpoint is not None:
        model = f"{_PROVIDERS[endpoint.wire]}/{endpoint.model}"
        env = {
            "messages": {"ANTHROPIC_BASE_URL": endpoint.base_url, "ANTHROPIC_API_KEY": endpoint.key},
            "responses": {"OPENAI_BASE_URL": f"{endpoint.base_url}/v1", "OPENAI_API_KEY": endpoint.key},
            "gemini": {"GOOGLE_GEMINI_BASE_URL": endpoint.base_url, "GEMINI_API_KEY": endpoint.key},
        }[endpoint.wire]
    settings = {
        "model": model,
        "effort": context.effort,
        # Where the harness puts deliverables, below the working directory. The original's is `output`.
        "output": context.options.get("output", "output"),
        "ask": context.permissions != "allow",
        "max_turns": int(context.options.get("max-turns", 200)),
        "shell_timeout": int(context.options.get("shell-timeout", 60)),
    }
    argv = (f"{PREFIX}/bin/python", f"{PREFIX}/harness.py", VERSION)
    return Launch(argv=argv, env={**env, "BENCHFLOW_HARVEY": json.dumps(settings)})
