"""E2B: the cases of every cloud, and what is its own."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path

import pytest
from benchflow_testing_clouds.cases import CloudCase, CloudFaults, CloudRollouts, Refusal, Wire
from benchflow_testing_clouds.cases.wire import Open
from benchflow_testing_clouds.control import Remote

from benchflow_core.contracts import (
    ImageRef,
    ImageRequest,
    Resources,
    SandboxProvider,
    SandboxSpec,
    StartRequest,
)
from benchflow_core.errors import (
    BuildError,
    CapabilityMissing,
    CredentialRefused,
    SandboxQuotaExceeded,
    SandboxRateLimited,
    TaskError,
)

ROOT = Path(__file__).parents[4]
CREATE = "POST /v2/sandboxes"
OUTPUT, INPUT = "POST /process.Process/Start", "POST /process.Process/StreamInput"
DEBIAN = "debian:bookworm-slim"
WIRE = Wire(
    name="e2b",
    package="benchflow_sandbox_e2b",
    create=CREATE,
    output=OUTPUT,
    box={CREATE: 1, OUTPUT: 1, INPUT: 1, "DELETE /sandboxes/{sandbox_id}": 1},
    job={"GET /v2/sandboxes": 1, "GET /templates/{template_id}": 1},
    cuts=({"route": OUTPUT, "after_bytes": 300_000}, {"route": INPUT, "after_bytes": 500_000, "skip": 1}),
    refused_when_dead=OUTPUT,
    refusals=(
        Refusal(429, SandboxRateLimited, times=4),  # the SDK tries three more
        Refusal(403, SandboxQuotaExceeded),
        Refusal(401, CredentialRefused),
    ),
    wait=1,
    secrets=("E2B_API_KEY",),
    missing="E2B_API_KEY is not set",
    login=(".e2b/config.json", lambda secrets: json.dumps({"teamApiKey": secrets["E2B_API_KEY"]})),
    wrong=({"memory_mb": "x"}, {"memory_mb": "99999"}, {"cpus": "9"}, {"keep_minutes": "1441"}),
    too_much=Resources(storage_mb=50 * 1024, cpus=0.5, memory_mb=777),
    said=("at most 10240 MB of free disk", "cpus = 0.5", "memory_mb = 777"),
    page=ROOT / "docs" / "sandboxes" / "e2b.md",
)
BEYOND = (
    ("COPY --from=0 /etc/passwd /x", "line 2: COPY --from=0: there is no such stage before"),
    ("FROM a\nCOPY --from=a /x /y /z", "line 3: COPY of several sources"),
    ("FROM a\nCOPY --from=a $GOPATH/bin /x", "line 3: COPY --from with .GOPATH/bin, a variable of the image's own"),
    ("FROM a\nCOPY --from=a --chmod=u+x /x /y", "line 3: COPY --chmod=u.x"),
    (f"RUN --network=none true\nFROM {DEBIAN}\nCOPY --from=a /x /y", "line 2: RUN --network"),
    ("RUN --mount=type=bind,source=x,target=/x true", "line 2: RUN --mount=type=bind"),
    ("RUN --mount=type=secret,id=key true", "line 2: RUN --mount=type=secret"),
    ("RUN --network=none true", "line 2: RUN --network"),
    ('SHELL ["/bin/bash", "-c"]', "line 2: SHELL"),
    ("ADD https://example.org/x /x", "line 2: ADD from a remote URL"),
    ("ADD x.tar.gz /x", "line 2: ADD of an archive"),
    ("COPY --parents x /x", "line 2: COPY --parents"),
)
STAGES = f"""\
ARG TAG=none
ARG BASE=debian
FROM --platform=linux/amd64 ${{BASE}}:$TAG AS ground
ARG TAG
RUN --mount=type=cache,target=/var/cache/mine test -d /var/cache/mine && echo $TAG > /tag
FROM {DEBIAN} AS unused
RUN exit 7
FROM ground AS top
WORKDIR /work
COPY . .
RUN ls -A > /seen
COPY * /flat/
FROM {DEBIAN}
RUN exit 8
"""
BUILDER = f"""\
ARG VERSION=7
FROM {DEBIAN} AS base
RUN mkdir -p /out/share/empty && useradd -u 4321 maker

FROM base AS builder
ARG VERSION
COPY source /src/
COPY --from={DEBIAN} /etc/debian_version /out/share/
RUN sed "s/@/$VERSION/" /src/source > /out/app && chmod 750 /out/app \\
 && ln /out/app /out/share/twin && ln -s ../app /out/share/link && ln -s /out/app /current \\
 && chown maker /out/app && echo hidden > /out/share/.dot && mkdir /tmp/left && echo left > /tmp/left/a.txt
USER maker

FROM {DEBIAN} AS unused
RUN exit 7

FROM {DEBIAN}
ENV PLACE=/usr/local
RUN useradd -u 1234 owner && mkdir -m 711 /kept && ln -s /etc/hostname /usr/bin/linked && mkdir /home/in
WORKDIR /home/in
USER owner
COPY --from=builder --chown=root:root --chmod=755 /out/app $PLACE/bin/app
COPY --from=1 /out/share/ /kept
COPY --from=Builder --chown=owner --chmod=0444 \\
  /tmp/*/*.txt /none* /current relative/
COPY --from=builder /out/share/link /usr/bin/linked
COPY --from=builder /out/app .
RUN app > /tmp/ran
"""
LAID = {
    "/usr/local/bin/app": "root:root 755 regular file",
    "/kept": "root:root 711 directory",
    "/kept/empty": "root:root 755 directory",
    "/kept/twin": "4321:root 750 regular file",
    "/kept/link": "root:root 777 symbolic link",
    "/kept/.dot": "root:root 644 regular file",
    "/kept/debian_version": "root:root 644 regular file",
    "relative": "owner:owner 755 directory",
    "relative/a.txt": "owner:owner 444 regular file",
    "relative/current": "owner:owner 444 regular file",
    "/usr/bin/linked": "4321:root 750 regular file",
    "app": "4321:root 750 regular file",
}


class TestFaults(CloudFaults):
    wire = WIRE


class TestRollouts(CloudRollouts):
    wire = WIRE
    tasks = ROOT / "examples" / "tasks"


class TestE2B(CloudCase):
    wire = WIRE

    async def test_a_box_that_is_hard_to_reach_again_is_reached(
        self, provider: SandboxProvider, image: ImageRef, cloud: Remote
    ) -> None:
        """Cut; then no answer, then an unavailable proxy, then the input refused; then all is well."""
        cloud.fault(OUTPUT, after_bytes=30_000)
        box = await provider.start(image, StartRequest(name="far"))
        cloud.fault(OUTPUT, drop=True)
        cloud.fault(OUTPUT, status=502, body="port is not open")
        cloud.fault(INPUT, status=503)
        async with asyncio.timeout(60):
            done = await box.exec(["sh", "-c", "head -c 200000 /dev/zero"])
        assert done.exit_code == 0 and len(done.stdout) == 200_000
        assert cloud.state()["faults"] == []
        await box.stop()

    async def test_another_size_is_another_template(
        self, provider: SandboxProvider, image: ImageRef, cloud: Remote
    ) -> None:
        box = await provider.start(image, StartRequest(name="sized", resources=WIRE.too_much))
        assert any(name.endswith("-c1m778d10240") for name in cloud.state()["templates"])
        await box.stop()

    async def test_a_dead_host_costs_nobody_money(
        self, provider: SandboxProvider, image: ImageRef, cloud: Remote
    ) -> None:
        for wanted, lives in ((3600, 900), (120, 120)):
            box = await provider.start(image, StartRequest(name="short", expires_after=wanted))
            asked = cloud.state()["sandboxes"][box.info.id]
            assert asked["timeout"] == lives and asked["autoPause"] is False
            await box.stop()

    async def test_a_box_is_kept_while_its_host_lives(
        self, provider: SandboxProvider, image: ImageRef, cloud: Remote
    ) -> None:
        from benchflow_sandbox_e2b.box import E2BMachine

        box = await provider.start(image, StartRequest(name="kept", expires_after=3600))
        before = cloud.state()["sandboxes"][box.info.id]["ends"]
        inside = box._machine._sandbox
        keeper = E2BMachine(inside, (), 3, time.time() + 60)
        await asyncio.sleep(1.6)
        keeper._alive.cancel()
        after = cloud.state()["sandboxes"][box.info.id]["ends"]
        assert after < before - 600, "it asked for three seconds more, not for fifteen minutes"
        await inside.set_timeout(600)
        await box.stop()

    @pytest.mark.parametrize(("line", "said"), BEYOND)
    def test_what_a_template_cannot_do_is_refused_by_line_before_anything_starts(
        self, spec: SandboxSpec, cloud: Remote, tmp_path: Path, line: str, said: str
    ) -> None:
        cloud.reset()
        (tmp_path / "Dockerfile").write_text(f"FROM {DEBIAN} AS a\n{line}\n")
        with pytest.raises((CapabilityMissing, TaskError), match=said) as refused:
            spec.refuse({}, {"E2B_API_KEY": "k"}, ImageRequest(dockerfile=tmp_path / "Dockerfile"))
        assert cloud.requests == {}
        assert refused.value.remedy or isinstance(refused.value, TaskError), "a mistake names itself"

    async def test_stages_that_stand_on_each_other_and_caches_are_built(
        self, provider: SandboxProvider, tmp_path: Path
    ) -> None:
        (task := tmp_path / "task").mkdir()
        (task / "file").write_text("copied\n")
        (task / "Dockerfile").write_text(STAGES)
        arguments = {"TAG": "bookworm-slim"}
        made = await provider.prepare(
            ImageRequest(context=task, dockerfile=task / "Dockerfile", build_args=arguments, target="top")
        )
        box = await provider.start(made, StartRequest(name="stages"))
        assert (await box.exec(["cat", "/tag", "file"])).stdout == b"bookworm-slim\ncopied\n"
        shown = (await box.exec(["sh", "-c", "ls -A; cat /seen; ls -A /flat"])).stdout
        assert shown == b"Dockerfile\nfile\n" * 3, "and nothing of ours, for no command"
        assert made.workdir == "/work" and made.notices == ()
        await box.stop()

    async def test_files_are_copied_from_stages_and_images(
        self, spec: SandboxSpec, provider: SandboxProvider, open_provider: Open, cloud: Remote, tmp_path: Path
    ) -> None:
        task = tmp_path / "task"
        task.mkdir()
        (task / "source").write_text("#!/bin/sh\necho version @\n")
        (task / "Dockerfile").write_text(BUILDER)
        request = ImageRequest(context=task, dockerfile=task / "Dockerfile", build_args={"VERSION": "9"})
        spec.refuse({}, {"E2B_API_KEY": "k"}, request)
        cloud.reset()
        made = await provider.prepare(request)
        assert cloud.state()["sandboxes"] == {}, "boxes that were copied from are gone"
        assert cloud.requests["POST /v3/templates"] == 3, "the image, the builder, and what was asked for"
        leases = {lease.labels.get("name") async for lease in spec.list_leases()}
        assert leases >= set(cloud.state()["templates"]), "each can be listed and removed"
        box = await provider.start(made, StartRequest(name="copied"))
        show = "stat -c '%n %U:%G %a %F' -- \"$@\" | sed s/UNKNOWN/4321/"
        shown = await box.exec(["sh", "-c", show, "show", *LAID], user="root")
        assert dict(line.split(" ", 1) for line in shown.stdout.decode().splitlines()) == LAID
        left = "test -e /opt/benchflow/copied || echo clean"
        said = await box.exec(["sh", "-c", f"cat /tmp/ran relative/a.txt; readlink /kept/link; {left}"])
        assert said.stdout == b"version 9\nleft\n../app\nclean\n"
        await box.stop()

        cloud.reset()
        (task / "Dockerfile").write_text(BUILDER + "RUN true\n")
        await open_provider().prepare(request)
        assert cloud.requests["POST /v3/templates"] == 1, "what is copied from was there"

    async def test_what_cannot_be_copied_fails_by_line_and_leaves_no_box(
        self, provider: SandboxProvider, open_provider: Open, cloud: Remote, tmp_path: Path
    ) -> None:
        def asks(line: str) -> ImageRequest:
            task = tmp_path / "task"
            task.mkdir(exist_ok=True)
            (task / "Dockerfile").write_text(f"FROM {DEBIAN} AS a\nFROM a\n{line}\n")
            return ImageRequest(context=task, dockerfile=task / "Dockerfile")

        with pytest.raises(BuildError, match="Dockerfile, line 3: COPY --from=a: there is no /missing in it"):
            await provider.prepare(asks("COPY --from=a /etc/hostname /missing /x/"))
        with pytest.raises(BuildError, match="line 3: COPY --from=0: there is no nobody-here in /etc/passwd"):
            await provider.prepare(asks("COPY --from=0 --chown=nobody-here /etc/hostname /x"))
        cloud.reset()
        cloud.fault("GET /files", after_bytes=20)
        cloud.fault("GET /files", delay=60)
        building = asyncio.ensure_future(open_provider().prepare(asks("COPY --from=a /etc/passwd /x")))
        while cloud.requests.get("GET /files", 0) < 2:
            assert not building.done(), building.result()
            await asyncio.sleep(0.05)
        building.cancel()
        with pytest.raises(asyncio.CancelledError):
            await building
        assert cloud.state()["sandboxes"] == {}
        cloud.reset()

    def test_an_image_whose_place_is_not_known_is_said(self, image: ImageRef) -> None:
        assert "E2B does not take over an image's own WORKDIR and USER" in image.notices[0]
