"""Can it run here? A task's needs against what is installed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Literal

from benchflow_core.contracts.adapters import Finding
from benchflow_core.contracts.common import Capability
from benchflow_core.contracts.sandboxes import ImageRequest
from benchflow_core.contracts.tasks import Task
from benchflow_core.errors import BenchflowError, PluginFailed
from benchflow_core.plugins import Loaded, registry
from benchflow_core.task.env import requested_host_vars
from benchflow_core.task.needs import required_capabilities, wanted_capabilities

__all__ = ["runtime_findings"]

_IMAGE = (Capability.IMAGE_BUILD, Capability.IMAGE_PREBUILT)


def runtime_findings(task: Task, sandbox: str | None = None, *, allow_substitute: bool = False) -> list[Finding]:
    """For one sandbox, or for every installed one: then the task is fine if any of them can run it."""
    if allow_substitute:
        task = replace(task, environment=replace(task.environment, allow_substitute=True))
    return [*_sandboxes(task, sandbox), *_verifiers(task), *_host_variables(task), *_conversation(task)]


def _sandboxes(task: Task, name: str | None) -> Iterator[Finding]:
    if name is not None:
        yield from _sandbox(task, registry().get("sandbox", name), "error")
        return
    found = registry().all("sandbox")
    fitting = [s.name for s in found if not any(f.severity == "error" for f in _sandbox(task, s, "error"))]
    for sandbox in found:
        yield from _sandbox(task, sandbox, "info")
    if fitting:
        yield Finding("info", f"runs in: {', '.join(fitting)}", task.path, code="runs-in")
    else:
        remedy = "bench sandbox list shows what is installed and why it does not answer."
        yield Finding("error", "no installed sandbox can run this task", task.path, remedy=remedy, code="no-sandbox")


def _sandbox(task: Task, sandbox: Loaded, level: Literal["error", "info"]) -> Iterator[Finding]:
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
    missing = False
    for capability, why in required_capabilities(task).items():
        if capability not in capabilities:
            missing = True
            what = f"sandbox '{sandbox.name}' lacks {capability} ({why})"
            remedy = _who_has(capability)
            if capability in _IMAGE:
                remedy += " Or add --allow-substitute to run on the sandbox's own files."
            yield Finding(level, what, task.path, remedy=remedy, code="missing-capability")
    if not missing:
        yield from _refusal(task, sandbox, level)
    for capability, why in wanted_capabilities(task).items():
        if capability not in capabilities:
            what = f"sandbox '{sandbox.name}' does not give {capability} ({why})"
            yield Finding("info", what, task.path, code="unenforced")


def _refusal(task: Task, sandbox: Loaded, level: Literal["error", "info"]) -> Iterator[Finding]:
    """What the sandbox itself says to the task's files."""
    env = task.environment
    request = ImageRequest(env.context, env.dockerfile, env.image, env.compose, allow_substitute=env.allow_substitute)
    try:
        sandbox.spec.refuse({}, os.environ, request)
    except BenchflowError as error:
        what = f"sandbox '{sandbox.name}': {error.message.rstrip('.')}"
        yield Finding(level, what, task.path, remedy=error.remedy or "", code="refused")


def _declared(sandbox: Loaded) -> frozenset[str]:
    declared = sandbox.spec.capabilities
    return frozenset(declared() if callable(declared) else declared)


def _who_has(capability: str) -> str:
    having = []
    for sandbox in registry().all("sandbox"):
        with suppress(PluginFailed):
            if sandbox.spec.available().ok and capability in _declared(sandbox):
                having.append(sandbox.name)
    return f"These have it: {', '.join(having)}." if having else "No installed sandbox has it."


def _verifiers(task: Task) -> Iterator[Finding]:
    known = {method: v.name for v in registry().all("verifier") for method in v.spec.methods}
    methods = [step.verifier.method for step in task.steps] if task.steps else [task.verifier.method]
    for method in dict.fromkeys(methods):
        if method not in known:
            handled = f"Installed ones handle: {', '.join(sorted(known)) or 'nothing'}."
            remedy = f"{handled} {registry().kept_out('verifier')}".strip()
            what = f"no installed verifier handles '{method}'"
            yield Finding("error", what, task.path, remedy=remedy, code="no-verifier")


def _conversation(task: Task) -> Iterator[Finding]:
    if task.prior_conversation is not None:
        what = "the earlier conversation cannot be given to an agent: only reference and null agents play this task"
        yield Finding("warning", what, task.prior_conversation, code="prior-conversation")


def _host_variables(task: Task) -> Iterator[Finding]:
    for variable in requested_host_vars(task):
        need = "needs" if variable.required else "may take"
        what = f"{need} the host's '{variable.name}' ({', '.join(variable.places)})"
        yield Finding(
            "info", what, task.path, remedy=f"Allow it with --allow-env {variable.name}.", code="host-variable"
        )
