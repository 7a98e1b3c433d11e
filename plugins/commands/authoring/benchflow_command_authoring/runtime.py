"""Compare what a task needs with what is installed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Literal

from benchflow_core.contracts import Capability, Finding, ImageRequest, Task
from benchflow_core.contracts.core import Core, LoadedPlugin
from benchflow_core.errors import BenchflowError, PluginFailed

__all__ = ["runtime_findings"]

_IMAGE = (Capability.IMAGE_BUILD, Capability.IMAGE_PREBUILT)


def runtime_findings(
    core: Core, task: Task, sandbox: str | None = None, *, allow_substitute: bool = False
) -> list[Finding]:
    """Check a task against one sandbox, or against all installed ones: then it is enough that one can run it."""
    if allow_substitute:
        task = replace(task, environment=replace(task.environment, allow_substitute=True))
    return [
        *_sandboxes(core, task, sandbox),
        *_verifiers(core, task),
        *_host_variables(core, task),
        *_conversation(task),
    ]


def _sandboxes(core: Core, task: Task, name: str | None) -> Iterator[Finding]:
    if name is not None:
        yield from _sandbox(core, task, core.plugin("sandbox", name), "error")
        return
    found = core.plugins("sandbox")
    fitting = [s.name for s in found if not any(f.severity == "error" for f in _sandbox(core, task, s, "error"))]
    for sandbox in found:
        yield from _sandbox(core, task, sandbox, "info")
    if fitting:
        yield Finding("info", f"runs in: {', '.join(fitting)}", task.path, code="runs-in")
    else:
        remedy = "bench sandbox list shows what is installed and why it does not answer."
        yield Finding("error", "no installed sandbox can run this task", task.path, remedy=remedy, code="no-sandbox")


def _sandbox(core: Core, task: Task, sandbox: LoadedPlugin, level: Literal["error", "info"]) -> Iterator[Finding]:
    """What is missing there, as errors or, where others can do it, as remarks."""
    state = sandbox.spec.available()
    if not state.ok:
        what = f"sandbox '{sandbox.name}' does not answer here: {state.reason}"
        yield Finding(level, what, task.path, remedy=state.remedy, code="unavailable")
        return
    try:
        capabilities = _declared(sandbox)
    except PluginFailed as error:
        yield Finding(level, error.message.rstrip("."), task.path, code="unavailable")
        return
    missing, needs = False, core.needs_of(task)
    for capability, why in needs.required.items():
        if capability not in capabilities:
            missing = True
            what = f"sandbox '{sandbox.name}' lacks {capability} ({why})"
            remedy = _who_has(core, capability)
            if capability in _IMAGE:
                remedy += " Or add --allow-substitute to run on the sandbox's own files."
            yield Finding(level, what, task.path, remedy=remedy, code="missing-capability")
    if not missing:
        yield from _refusal(task, sandbox, level)
    for capability, why in needs.wanted.items():
        if capability not in capabilities:
            what = f"sandbox '{sandbox.name}' does not give {capability} ({why})"
            yield Finding("info", what, task.path, code="unenforced")


def _refusal(task: Task, sandbox: LoadedPlugin, level: Literal["error", "info"]) -> Iterator[Finding]:
    """What the sandbox itself says to the task's files."""
    env = task.environment
    request = ImageRequest(env.context, env.dockerfile, env.image, env.compose, allow_substitute=env.allow_substitute)
    try:
        sandbox.spec.refuse({}, os.environ, request)
    except BenchflowError as error:
        what = f"sandbox '{sandbox.name}': {error.message.rstrip('.')}"
        yield Finding(level, what, task.path, remedy=error.remedy or "", code="refused")


def _declared(sandbox: LoadedPlugin) -> frozenset[str]:
    declared = sandbox.spec.capabilities
    return frozenset(declared() if callable(declared) else declared)


def _who_has(core: Core, capability: str) -> str:
    having = []
    for sandbox in core.plugins("sandbox"):
        with suppress(PluginFailed):
            if sandbox.spec.available().ok and capability in _declared(sandbox):
                having.append(sandbox.name)
    return f"These have it: {', '.join(having)}." if having else "No installed sandbox has it."


def _verifiers(core: Core, task: Task) -> Iterator[Finding]:
    known = {method: v.name for v in core.plugins("verifier") for method in v.spec.methods}
    methods = [step.verifier.method for step in task.steps] if task.steps else [task.verifier.method]
    for method in dict.fromkeys(methods):
        if method not in known:
            handled = f"Installed ones handle: {', '.join(sorted(known)) or 'nothing'}."
            remedy = f"{handled} {core.blocked('verifier')}".strip()
            what = f"no installed verifier handles '{method}'"
            yield Finding("error", what, task.path, remedy=remedy, code="no-verifier")


def _conversation(task: Task) -> Iterator[Finding]:
    if task.prior_conversation is not None:
        what = "the earlier conversation cannot be given to an agent: only reference and null agents play this task"
        yield Finding("warning", what, task.prior_conversation, code="prior-conversation")


def _host_variables(core: Core, task: Task) -> Iterator[Finding]:
    needs = core.needs_of(task)
    for name, places in needs.host_variables.items():
        verb = "needs" if name in needs.required_variables else "may take"
        what = f"{verb} the host's '{name}' ({', '.join(places)})"
        yield Finding("info", what, task.path, remedy=f"Allow it with --allow-env {name}.", code="host-variable")
