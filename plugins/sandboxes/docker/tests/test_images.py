"""Images: built once for equal content, as the task wrote it, with what goes wrong said clearly."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest

from benchflow_core.contracts import ImageRequest, SandboxProvider, StartRequest
from benchflow_core.errors import BenchflowError, BuildError, ConfigurationError
from benchflow_sandbox_docker.engine.api import EngineClient

pytestmark = pytest.mark.docker

Task = Callable[..., ImageRequest]
Open = Callable[[], SandboxProvider]
BASE = "FROM debian:bookworm-slim\n"


async def _output(provider: SandboxProvider, request: ImageRequest, *argv: str) -> str:
    box = await provider.start(await provider.prepare(request), StartRequest(name="image"))
    try:
        return (await box.exec(argv)).stdout.decode()
    finally:
        await box.stop()


async def test_what_the_dockerfile_says_holds_in_the_box(provider: SandboxProvider, task: Task) -> None:
    text = (
        BASE + "ENV KIND=first\nARG EXTRA=none\nRUN echo $EXTRA >/made\nWORKDIR /work\nCOPY data.txt .\nUSER nobody\n"
    )
    request = task(text, {"data.txt": "hello\n"}, build_args={"EXTRA": "given"})
    image = await provider.prepare(request)
    assert (image.workdir, image.user, image.env["KIND"], image.fidelity) == ("/work", "nobody", "first", "exact")
    script = "pwd; id -un; echo $KIND; cat data.txt /made"
    assert await _output(provider, request, "sh", "-c", script) == "/work\nnobody\nfirst\nhello\ngiven\n"


async def test_equal_content_is_built_once(open_provider: Open, task: Task, engine: EngineClient) -> None:
    """Eight at once and then again, from another provider, and from another folder with another time stamp."""
    files = {"a/b": "x"}
    text = BASE + "COPY a /a\nRUN od -An -N8 -tx8 /dev/urandom >/stamp\n"
    request, provider = task(text, files), open_provider()
    found = await asyncio.gather(*(provider.prepare(request) for _ in range(8)))
    found.append(await open_provider().prepare(task(text, files)))
    assert len({(image.ref, image.digest) for image in found}) == 1
    changed = task(text, {"a/b": "y"})
    assert (await provider.prepare(changed)).ref != found[0].ref
    assert (await provider.prepare(replace(request, build_args={"X": "1"}))).ref != found[0].ref


async def test_ignored_files_are_neither_sent_nor_counted(provider: SandboxProvider, task: Task) -> None:
    files = {".dockerignore": "*.log\n!keep.log\nsecret/\n**/cache\n", "a.log": "", "keep.log": "", "secret/x": "",
             "deep/down/cache/y": "", "deep/z": ""}  # fmt: skip
    request = task(BASE + "COPY . /ctx\n", files)
    shown = await _output(provider, request, "sh", "-c", "cd /ctx; find . -type f | sort")
    assert shown == "./.dockerignore\n./Dockerfile\n./deep/z\n./keep.log\n"
    assert request.context is not None
    (outside := request.context.parent / "Elsewhere").write_text(BASE + "COPY . /ctx\nLABEL is=outside\n")
    there = replace(request, dockerfile=outside)
    assert await _output(provider, there, "sh", "-c", "cd /ctx; find . -type f | sort") == shown, "nothing of ours"
    before = await provider.prepare(request)
    (request.context / "secret/x").write_text("changed")
    assert (await provider.prepare(request)).ref == before.ref


async def test_base_override_replaces_every_from_but_stages(provider: SandboxProvider, task: Task) -> None:
    text = (
        "FROM benchflow.invalid/a:1 AS one\nRUN echo 1 >/one\nFROM benchflow.invalid/b:2\nCOPY --from=one /one /one\n"
    )
    request = task(text, base_override="debian:bookworm-slim")
    image = await provider.prepare(request)
    assert image.fidelity == "substituted" and "debian:bookworm-slim" in image.notices[0]
    assert await _output(provider, request, "cat", "/one") == "1\n"
    stage = replace(task(text, base_override="debian:bookworm-slim"), target="one")
    assert await _output(provider, stage, "cat", "/one") == "1\n"


async def test_image_that_nobody_has_is_named(provider: SandboxProvider, task: Task) -> None:
    for request in (task("FROM benchflow.invalid/none:9\n"), ImageRequest(image="benchflow.invalid/none:9")):
        with pytest.raises(BenchflowError, match=r"benchflow\.invalid/none:9") as caught:
            await provider.prepare(request)
        assert "--base-image-override" in str(caught.value)


async def test_failing_step_is_told_with_the_log(provider: SandboxProvider, task: Task) -> None:
    with pytest.raises(BuildError, match="Dockerfile") as caught:
        await provider.prepare(task(BASE + "RUN echo the reason >&2; exit 7\n"))
    assert "the reason" in str(caught.value) + caught.value.details["log"]


async def test_build_that_takes_too_long_is_stopped(provider: SandboxProvider, task: Task) -> None:
    with pytest.raises(BuildError, match="longer than 2 s"):
        await provider.prepare(task(BASE + "RUN sleep 60\n", timeout=2.0))


async def test_syntax_line_does_not_get_in_the_way(provider: SandboxProvider, task: Task) -> None:
    request = task("# syntax=docker/dockerfile:1\n" + BASE + "RUN echo made >/made\n")
    assert await _output(provider, request, "cat", "/made") == "made\n"


@pytest.mark.parametrize(
    ("lines", "what"),
    [("RUN <<EOF\necho x\nEOF\n", "heredoc"), ("RUN --mount=type=cache,target=/c echo x\n", "RUN --mount")],
)
async def test_what_takes_buildkit_is_said_where_it_fails(
    provider: SandboxProvider, task: Task, lines: str, what: str
) -> None:
    """A newer engine builds it; an older one must not leave the user with its own words alone."""
    try:
        await provider.prepare(task(BASE + lines))
    except BuildError as error:
        assert what in str(error.remedy) and "Dockerfile:2" in str(error.remedy)


async def test_task_without_image_is_refused(provider: SandboxProvider) -> None:
    with pytest.raises(ConfigurationError, match="no image"):
        await provider.prepare(ImageRequest())
