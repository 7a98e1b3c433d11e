"""The box a verifier runs in, one kind per isolation policy. Each gives one box after another on the same state."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Mapping
from dataclasses import field
from typing import Protocol

from benchflow_core.contracts.sandboxes import ImageRef, Sandbox, StartRequest
from benchflow_core.contracts.tasks import VerifierSettings
from benchflow_core.errors import PluginFailed
from benchflow_core.quick import dataclass
from benchflow_core.verify.findings import Finding
from benchflow_core.verify.ready import DEFAULT_PATH, make_ready
from benchflow_core.verify.request import VerifyRequest

__all__ = ["DEFAULT_PATH", "Boxes", "NoBox", "Ready", "SharedBox", "end_box", "pinned_env", "verifier_home"]

_ROOT = (None, "root", "0", "0:0", "root:root")


@dataclass(slots=True)
class Ready:
    """A box that a verifier may enter."""

    box: Sandbox
    env: Mapping[str, str]
    workdir: str
    kill: bool = True
    """Kill everything in it before the reward is read."""
    findings: list[Finding] = field(default_factory=list)


async def end_box(request: VerifyRequest, box: Sandbox) -> None:
    """A plugin that cannot end the verifier's box keeps the verdict from nobody."""
    try:
        await box.stop()
    except PluginFailed as error:
        request.emit("notice", {"text": error.message})


class Boxes(Protocol):
    """An isolation policy at work."""

    repeatable: bool
    """Can a failed verification be repeated on the same state?"""
    findings: list[Finding]

    async def open(self) -> None:
        """Capture the state."""

    def box(self) -> contextlib.AbstractAsyncContextManager[Ready]: ...

    async def close(self) -> None: ...


def verifier_home(request: VerifyRequest) -> str:
    """Where the verifier's user lives. Not asked of the box, whose answer would be the agent's."""
    declared = request.start.env.get("HOME") or request.image.env.get("HOME")
    if declared:
        return declared.rstrip("/") or "/"
    return "/root" if request.user in _ROOT else f"/home/{(request.user or '').partition(':')[0]}"


def pinned_env(request: VerifyRequest, image: ImageRef, start: StartRequest) -> dict[str, str]:
    """Every variable that the verifier gets from us; none of them comes out of a box.

    With SHLVL set, a shell whose input is a socket does not take itself for a remote login and read start-up files.
    """
    env = {"SHLVL": "1", **image.env, **start.env}
    if request.user in _ROOT:
        env.setdefault("HOME", "/root")
    return {**env, **request.env}


class SharedBox:
    """The agent's own box, as it is: for tasks whose tests need its processes and files together."""

    repeatable = False

    def __init__(self, request: VerifyRequest) -> None:
        self.request = request
        self.findings: list[Finding] = []

    async def open(self) -> None:
        return

    @contextlib.asynccontextmanager
    async def box(self) -> AsyncIterator[Ready]:
        request, settings = self.request, self.request.settings
        box, own = request.sandbox, settings.network
        await make_ready(box, (settings.logs_target,), request.workdir, _tests(settings), settings.service)
        changed = own is not None and own != request.start.network
        if own is not None and changed:
            await box.set_network(own)
        try:
            env = pinned_env(request, request.image, request.start)
            yield Ready(box, env, request.workdir, kill=self._is_last() and not request.soft)
        finally:
            if changed:
                await box.set_network(request.start.network)

    async def close(self) -> None:
        """The tests do not stay where an agent could read them in a later turn or step, nor what they said of it."""
        settings, soft = self.request.settings, self.request.soft
        if settings.tests or soft:
            said = (settings.logs_target,) if soft else ()
            await make_ready(self.request.sandbox, said, "/", _tests(settings), settings.service)

    def _is_last(self) -> bool:
        """A later step of the task may need what runs now."""
        step, steps = self.request.step, self.request.task.steps
        return step is None or step is steps[-1]


def _tests(settings: VerifierSettings) -> str:
    """Where the host's tests go; nothing where the image brings them."""
    return settings.tests_target if settings.tests else ""


class NoBox:
    """For a verifier that only looks at what was brought out already."""

    repeatable = True

    def __init__(self, request: VerifyRequest) -> None:
        self.request = request
        self.findings: list[Finding] = []

    async def open(self) -> None:
        return

    @contextlib.asynccontextmanager
    async def box(self) -> AsyncIterator[Ready]:
        request = self.request
        yield Ready(request.sandbox, pinned_env(request, request.image, request.start), request.workdir, kill=False)

    async def close(self) -> None:
        return
