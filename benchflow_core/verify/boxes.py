"""The policies of the core: the agent's own box, a box of another image, or none. Each runs the verifier once."""

from __future__ import annotations

import contextlib
import posixpath
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from benchflow_core.contracts.common import private_folder
from benchflow_core.contracts.isolation import IsolationRequest, RunVerifier, Verdict, VerifyBox, noted
from benchflow_core.contracts.sandboxes import ImageRef, ImageRequest, Sandbox
from benchflow_core.contracts.tasks import Artifact
from benchflow_core.errors import TransferRefused, VerifierError

__all__ = ["make_folders", "verify_separate", "verify_shared", "verify_without_box"]

_ENV: Final = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C", "SHLVL": "1"}
_SECONDS: Final = 120.0
_MAKE: Final = """
work=$1; gone=$2; shift 2
[ -z "$gone" ] || rm -rf "$gone" || exit 4
umask 0
for folder do
  if [ -e "$folder" ] || [ -h "$folder" ]; then rm -rf "$folder" || exit 3; fi
  mkdir -p "$folder" || exit 3
done
umask 022
[ -d "$work" ] || { rm -f "$work"; mkdir -p "$work"; }
exit 0
"""
_ALWAYS: Final = Artifact("/logs/artifacts")


async def make_folders(
    box: Sandbox, folders: Sequence[str], workdir: str, gone: str = "", service: str = "main"
) -> None:
    """Make new empty folders for the output, and the working directory if it is gone; remove one path."""
    argv = ("/bin/sh", "-c", _MAKE, "sh", workdir, gone, *folders)
    done = await box.exec(argv, env=_ENV, user="root", cwd="/", timeout=_SECONDS, service=service)
    tail = " ".join(done.stderr.decode("utf-8", "replace").split())[-300:]
    if done.exit_code in (3, 4) or done.timed_out:
        raise VerifierError(f"the verifier's box could not be made ready: {tail or 'it took too long'}")
    if done.exit_code:
        raise VerifierError(
            f"/bin/sh does not work in the verifier's box (exit code {done.exit_code}): {tail}",
            remedy="The verifier needs an image with a shell; or verify in an image of its own.",
        )


async def verify_shared(request: IsolationRequest, run: RunVerifier) -> Verdict:
    """Verify in the agent's own box, as it is: for tasks whose tests need its processes and files together."""
    settings, soft = request.settings, request.soft
    try:
        return await run(partial(_agents_box, request), request.output_dir, 1)
    finally:  # the tests do not stay where an agent could read them later, nor what they said of it
        if settings.tests or soft:
            folders = (settings.logs_target,) if soft else ()
            tests = settings.tests_target if settings.tests else ""
            with contextlib.suppress(VerifierError):  # a box without a shell cannot be tidied either
                await make_folders(request.sandbox, folders, "/", tests, settings.service)


@contextlib.asynccontextmanager
async def _agents_box(request: IsolationRequest) -> AsyncIterator[VerifyBox]:
    box, own, before = request.sandbox, request.settings.network, request.start.network
    is_last = request.step is None or request.step is request.task.steps[-1]  # a later one may need what runs now
    if own is not None and own != before:
        await box.set_network(own)
    try:
        yield VerifyBox(box, request.image, request.start, request.workdir, kill=is_last and not request.soft)
    finally:
        if own is not None and own != before:
            await box.set_network(before)


async def verify_without_box(request: IsolationRequest, run: RunVerifier) -> Verdict:
    """Verify by looking at what was brought out already."""

    @contextlib.asynccontextmanager
    async def no_box() -> AsyncIterator[VerifyBox]:
        yield VerifyBox(request.sandbox, request.image, request.start, request.workdir, kill=False)

    return await run(no_box, request.output_dir, 1 if request.soft else 2)


async def verify_separate(request: IsolationRequest, run: RunVerifier) -> Verdict:
    """Verify in a box of the verifier's own image, into which only declared artifacts are carried."""
    own, image = request.settings.environment, request.image
    if own is not None:
        image = await request.provider.prepare(_image_request(request))
    with private_folder() as folder:
        artifacts = (_ALWAYS, *request.task.artifacts, *(request.step.artifacts if request.step else ()))
        carried, findings = list[tuple[Path, str]](), list[dict[str, Any]]()
        for number, artifact in enumerate(dict.fromkeys(artifacts)):
            source = posixpath.join(request.workdir, artifact.source)
            try:
                await request.sandbox.download(source, folder / str(number), service=artifact.service)
            except FileNotFoundError:
                continue
            except TransferRefused as error:
                findings.append(noted("artifact-refused", source, error.message))
                continue
            carried.append((folder / str(number), source))
        opened = partial(_own_box, request, image, carried)
        verdict = await run(opened, request.output_dir, 1 if request.soft else 2)
    return replace(verdict, findings=(*findings, *verdict.findings))


@contextlib.asynccontextmanager
async def _own_box(
    request: IsolationRequest, image: ImageRef, carried: Sequence[tuple[Path, str]]
) -> AsyncIterator[VerifyBox]:
    own, network = request.settings.environment, request.settings.network
    start = replace(request.start, workdir=request.workdir, network=network or request.start.network)
    if own is not None:
        env = {name: value for name, value in own.env.items() if "${" not in value}
        network = network or own.network
        start = replace(start, env=env, workdir=own.workdir, resources=own.resources, network=network)
    async with request.box(image, start) as box:
        for source, target in carried:
            await box.upload(source, target)
        yield VerifyBox(box, image, start, start.workdir or image.workdir)


def _image_request(request: IsolationRequest) -> ImageRequest:
    """The verifier's own image; it may be substituted where the agent's was."""
    own = request.settings.environment
    assert own is not None
    return ImageRequest(
        context=own.context,
        dockerfile=own.dockerfile,
        image=own.image,
        compose=own.compose,
        timeout=own.build_timeout,
        allow_substitute=own.allow_substitute or request.image.fidelity == "substituted",
    )
