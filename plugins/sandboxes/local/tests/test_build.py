"""Following a Dockerfile in boxes."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from benchflow_core.contracts import ImageRequest, StartRequest
from benchflow_core.errors import BuildError, CapabilityMissing, TaskError


def request(folder: Path, text: str, **changes: Any) -> ImageRequest:
    folder.mkdir(exist_ok=True)
    (folder / "Dockerfile").write_text(text)
    return ImageRequest(folder, folder / "Dockerfile", **{"allow_substitute": True, **changes})


async def run(provider: Any, image: Any, script: str, **options: Any) -> str:
    box = await provider.start(image, StartRequest("test"))
    done = await box.exec(["sh", "-c", script], **options)
    await box.stop()
    assert done.exit_code == 0, done.stderr
    return str(done.stdout.decode())


EVERYTHING = """
ARG BASE=python:3.12
FROM ${BASE} AS build
WORKDIR /src
COPY a.txt sub/ ./
RUN mkdir /out && cat a.txt c.txt >/out/made && ln -s made /out/link
FROM ubuntu:24.04
ARG WHO=nobody
ENV GREETING="hello ${WHO}" PLAIN=1
WORKDIR /build
WORKDIR deep
COPY --chmod=640 a.txt /data/
COPY . /all/
ADD packed.tar.gz /unpacked
COPY --from=build /out /from
COPY <<END /note
$GREETING
END
RUN <<END
echo "$GREETING $WHO" >/said
END
SHELL ["/bin/bash", "-c"]
RUN [[ $PLAIN == 1 ]] && echo bash >>/said
RUN ["sh", "-c", "echo array >>/said"]
EXPOSE 80
HEALTHCHECK CMD true
CMD ["true"]
"""


async def test_instructions_are_followed(provider: Any, tmp_path: Path) -> None:
    import tarfile

    folder = tmp_path / "context"
    (folder / "sub").mkdir(parents=True)
    for name in ("a.txt", "sub/c.txt", "left.log"):
        (folder / name).write_text(f"{name}\n")
    (folder / ".dockerignore").write_text("*.log\nDockerfile\n")
    with tarfile.open(folder / "packed.tar.gz", "w:gz") as archive:
        archive.add(folder / "a.txt", "inside/a.txt")
    image = await provider.prepare(request(folder, EVERYTHING, build_args={"WHO": "you"}))
    assert image.fidelity == "substituted" and "FROM ubuntu:24.04" in image.notices[0]
    assert any("HEALTHCHECK" in notice for notice in image.notices)
    assert image.workdir == "/build/deep" and image.env["GREETING"] == "hello you"
    script = "pwd; cat /note /said /from/link /unpacked/inside/a.txt; stat -c %a /data/a.txt; ls /all; echo $GREETING"
    assert (await run(provider, image, script)).splitlines() == [
        "/build/deep", "hello you", "hello you you", "bash", "array", "a.txt", "sub/c.txt", "a.txt", "640", "a.txt",
        "packed.tar.gz", "sub", "hello you",
    ]  # fmt: skip


async def test_an_image_is_built_once_and_changes_belong_to_the_box(
    provider: Any, open_provider: Any, tmp_path: Path
) -> None:
    ask = request(tmp_path / "c", "FROM a\nCOPY Dockerfile /in\nRUN od -An -N8 -tx8 /dev/urandom >/stamp")
    images = await asyncio.gather(*(provider.prepare(ask) for _ in range(4)), open_provider().prepare(ask))
    stamps = {await run(provider, image, "cat /stamp; echo changed >/stamp; rm /in") for image in images}
    assert len(stamps) == 1 and len({image.digest for image in images}) == 1
    (tmp_path / "c" / "new").write_text("x")
    assert (await provider.prepare(ask)).digest != images[0].digest, "the context changed"
    box = await provider.start(images[0], StartRequest("changes"))
    await box.exec(["sh", "-c", "rm /stamp; echo x >/in"])
    changes = (await box.snapshot("x")).changes
    assert [(c.path, c.kind) for c in changes] == [("/in", "modified"), ("/stamp", "deleted")]


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("FROM a\nRUN true\nRUN echo why; \\\n exit 3", BuildError, "Dockerfile:3: RUN echo why;  exit 3 ended with 3: why"),
        ("FROM a\nRUN no-such-program", BuildError, "Dockerfile:2: .* ended with 127"),
        ("FROM a\nONBUILD RUN x", CapabilityMissing, "Dockerfile:2: ONBUILD is not supported"),
        ("FROM a\nADD https://example.invalid/x /x", CapabilityMissing, "Dockerfile:2: ADD of a URL"),
        ("FROM a\nCOPY --from=other:1 /x /x", CapabilityMissing, "Dockerfile:2: COPY --from=other:1 names an image"),
        ("FROM a\nCOPY --parents x /x", CapabilityMissing, "Dockerfile:2: COPY --parents"),
        ("FROM a\nRUN --mount=type=secret,id=x true", CapabilityMissing, "Dockerfile:2: RUN --mount=type=secret"),
        ("FROM a\nRUN --network=none true", CapabilityMissing, "Dockerfile:2: RUN --network=none"),
        ("FROM a\nCOPY ../x /x", TaskError, "Dockerfile:2: '../x' lies outside"),
        ("FROM a\nCOPY missing /x", TaskError, "Dockerfile:2: 'missing' matches nothing"),
        ("FROM a\nCOPY x", TaskError, "Dockerfile:2: COPY needs a source and a destination"),
        ("FROM a\nENV A=${x#y}", TaskError, "Dockerfile:2: the expansion"),
        ("FROM a AS b\nRUN true\nFROM c\nCOPY --from=b /no /x", TaskError, "Dockerfile:4: '/no' is not in the stage"),
    ],
)  # fmt: skip
async def test_what_cannot_be_done_is_named(own: Any, tmp_path: Path, text: str, error: type, message: str) -> None:
    for _ in range(2):
        with pytest.raises(error, match=message):
            await own.prepare(request(tmp_path / "c", text))
    state = tmp_path / "cache" / "sandbox-local"
    assert list((state / "images").iterdir()) == [] and list((state / "boxes").iterdir()) == []


async def test_other_images_are_not_used_unnoticed(provider: Any, tmp_path: Path) -> None:
    with pytest.raises(CapabilityMissing, match=r"FROM ubuntu:24\.04.*allow-substitute"):
        await provider.prepare(request(tmp_path / "c", "FROM ubuntu:24.04", allow_substitute=False))
    with pytest.raises(CapabilityMissing, match="compose"):
        await provider.prepare(ImageRequest(compose=tmp_path / "docker-compose.yaml", allow_substitute=True))
    assert (await provider.prepare(ImageRequest())).fidelity == "exact"


async def test_a_build_that_takes_too_long_ends(provider: Any, tmp_path: Path) -> None:
    with pytest.raises(BuildError, match="longer than 1 s"):
        await provider.prepare(request(tmp_path / "c", "FROM a\nRUN sleep 60", timeout=1))


async def test_users_of_a_dockerfile(provider: Any, tmp_path: Path) -> None:
    if (await provider.prepare(ImageRequest())) and provider.engine.facts["single_user"]:
        pytest.skip("one user only")
    text = "FROM a\nRUN useradd -m worker\nUSER worker\nRUN id -un >~/who\nCOPY --chown=worker Dockerfile /mine"
    image = await provider.prepare(request(tmp_path / "c", text))
    assert await run(provider, image, "id -un; cat ~/who; stat -c %U /mine") == "worker\nworker\nworker\n"
    box = await provider.start(image, StartRequest("x"))
    assert box.info.default_user == "worker" and "worker" in box.info.users
