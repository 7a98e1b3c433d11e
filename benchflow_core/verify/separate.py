"""`separate`: a box of the verifier's own image, into which only declared artifacts are carried."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

from benchflow_core.contracts.common import private_folder
from benchflow_core.contracts.sandboxes import ImageRef, ImageRequest, StartRequest
from benchflow_core.contracts.tasks import Artifact, TaskEnvironment
from benchflow_core.errors import TransferRefused
from benchflow_core.verify.boxes import Ready, end_box, pinned_env
from benchflow_core.verify.findings import Finding
from benchflow_core.verify.ready import make_ready
from benchflow_core.verify.request import VerifyRequest

__all__ = ["SeparateBox"]

_ALWAYS = Artifact("/logs/artifacts")


class SeparateBox:
    repeatable = True

    def __init__(self, request: VerifyRequest) -> None:
        self.request = request
        self.findings: list[Finding] = []
        self._stack = contextlib.AsyncExitStack()
        self._carried: list[tuple[Path, str]] = []
        self._image = request.image

    async def open(self) -> None:
        own = self.request.settings.environment
        if own is not None:
            self._image = await self.request.provider.prepare(image_request(own, self.request.image))
        folder = self._stack.enter_context(private_folder())
        step = self.request.step
        artifacts = (_ALWAYS, *self.request.task.artifacts, *(step.artifacts if step else ()))
        for number, artifact in enumerate(dict.fromkeys(artifacts)):
            await self._fetch(artifact, folder / str(number))

    async def _fetch(self, artifact: Artifact, target: Path) -> None:
        workdir = self.request.workdir.rstrip("/")
        source = artifact.source if artifact.source.startswith("/") else f"{workdir}/{artifact.source}"
        try:
            await self.request.sandbox.download(source, target, service=artifact.service)
        except FileNotFoundError:
            return
        except TransferRefused as error:
            self.findings.append(Finding("artifact-refused", source, "noted", error.message))
            return
        self._carried.append((target, source))

    @contextlib.asynccontextmanager
    async def box(self) -> AsyncIterator[Ready]:
        request = self.request
        start = self._start()
        box = await request.provider.start(self._image, start)
        try:
            for source, target in self._carried:
                await box.upload(source, target)
            workdir = start.workdir or self._image.workdir
            await make_ready(box, (request.settings.logs_target,), workdir)
            yield Ready(box, pinned_env(request, self._image, start), workdir)
        finally:
            await end_box(request, box)

    async def close(self) -> None:
        await self._stack.aclose()

    def _start(self) -> StartRequest:
        own, settings, start = self.request.settings.environment, self.request.settings, self.request.start
        if own is None:
            return replace(start, workdir=self.request.workdir, network=settings.network or start.network)
        env = {name: value for name, value in own.env.items() if "${" not in value}
        return replace(
            start,
            env=env,
            workdir=own.workdir,
            resources=own.resources,
            network=settings.network or own.network,
        )


def image_request(environment: TaskEnvironment, agents: ImageRef) -> ImageRequest:
    """The verifier's own image; it may be substituted where the agent's was."""
    return ImageRequest(
        context=environment.context,
        dockerfile=environment.dockerfile,
        image=environment.image,
        compose=environment.compose,
        timeout=environment.build_timeout,
        allow_substitute=environment.allow_substitute or agents.fidelity == "substituted",
    )
