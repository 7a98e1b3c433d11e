"""Modal: the cases of every cloud, and what is its own."""

from __future__ import annotations

import asyncio
import gc
import os
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import modal
import pytest
from benchflow_boxkit.provider import BoxProvider
from benchflow_testing_clouds.cases import CloudCase, CloudFaults, CloudRollouts, Refusal, Wire
from benchflow_testing_clouds.cases.faults import echo
from benchflow_testing_clouds.control import Remote

from benchflow_core.contracts import (
    ImageRef,
    ImageRequest,
    Resources,
    SandboxContext,
    SandboxProvider,
    SandboxSpec,
    StartRequest,
)
from benchflow_core.errors import CapabilityMissing, CredentialRefused, SandboxQuotaExceeded, SandboxRateLimited

ROOT = Path(__file__).parents[4]
CREATE, OUTPUT = "SandboxCreateV2", "TaskExecStdioRead"
LOGIN = '[other]\ntoken_id = "ak-x"\n[mine]\ntoken_id = "{MODAL_TOKEN_ID}"\ntoken_secret = "{MODAL_TOKEN_SECRET}"\nactive = true\n'
WIRE = Wire(
    name="modal",
    package="benchflow_sandbox_modal",
    create=CREATE,
    output=OUTPUT,
    box={CREATE: 1, "TaskExecStart": 1, OUTPUT: 1, "SandboxTerminateV2": 1},
    job={"AuthTokenGet": 1, "AppGetOrCreate": 1, "ImageGetByTag": 1, "SandboxListV2": 1},
    chatter="TaskExecStdinWrite",
    cuts=({"route": OUTPUT, "after_bytes": 300_000}, {"route": OUTPUT, "after_bytes": 500_000}),
    refusals=(
        Refusal(429, SandboxRateLimited, retry_after=12),
        Refusal(429, SandboxQuotaExceeded),  # without a time to wait it is a limit of the workspace
        Refusal(401, CredentialRefused),
    ),
    secrets=("MODAL_TOKEN_ID", "MODAL_TOKEN_SECRET"),
    missing="MODAL_TOKEN_SECRET is not set",
    login=(".modal.toml", lambda secrets: LOGIN.format(**secrets)),
    wrong=({"memory_mb": "x"}, {"region": "us east"}, {"region": "us-east,"}, {"cpus": "65"}, {"idle_minutes": "0"}),
    too_much=Resources(storage_mb=50 * 1024, cpus=0.1, memory_mb=64),
    said=("storage_mb = 51200", "cpus = 0.1", "memory_mb = 64"),
    page=ROOT / "docs" / "sandboxes" / "modal.md",
)


class Output:
    """What a command prints, as the SDK hands it over: a piece, then nothing, until the box is gone."""

    def __init__(self) -> None:
        self.asked, self.gone, self.cancelled = asyncio.Event(), asyncio.Event(), False

    async def parts(self) -> AsyncIterator[bytes]:
        yield b"first"
        self.asked.set()
        try:
            await self.gone.wait()
        except asyncio.CancelledError:
            self.cancelled = True
            raise
        raise modal.exception.NotFoundError("Task is not running")


class TestFaults(CloudFaults):
    wire = WIRE


class TestRollouts(CloudRollouts):
    wire = WIRE
    tasks = ROOT / "examples" / "tasks"


class TestModal(CloudCase):
    wire = WIRE

    async def test_another_command_is_attached_where_the_first_cannot_be_read_on(
        self, provider: SandboxProvider, image: ImageRef, cloud: Remote
    ) -> None:
        """The stream is cut, and the SDK is refused when it wants to go on: the link makes a connection of its own."""
        cloud.reset()
        cloud.fault(OUTPUT, after_bytes=300_000)
        cloud.fault(OUTPUT, status=409)
        box = await provider.start(image, StartRequest(name="again"))
        await echo(box, 2 << 20)
        assert cloud.requests["TaskExecStart"] == 2 and cloud.state()["faults"] == []
        await box.stop()

    async def test_a_read_that_nobody_waits_for_ends_without_a_word(self) -> None:
        """A box is ended while the SDK reads from it. To cancel the SDK there can leave its failure to nobody."""
        from benchflow_sandbox_modal.box import Streams

        said: list[object] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: said.append(context))
        output = Output()
        stream = Streams(SimpleNamespace(stdout=output.parts()))
        assert await stream.read() == b"first"
        reading = asyncio.ensure_future(stream.read())
        await output.asked.wait()
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
        await stream.close()
        output.gone.set()
        await asyncio.sleep(0)
        del reading, stream
        gc.collect()
        await asyncio.sleep(0)
        assert (output.cancelled, said) == (False, [])

    async def test_every_way_of_copying_finds_its_files(self, provider: SandboxProvider, tmp_path: Path) -> None:
        folder = tmp_path / "task"
        folder.mkdir()
        for name in ("a b", "plain", "added"):
            (folder / name).write_text(f"{name}\n")
        (folder / "Dockerfile").write_text(
            'ARG BASE=debian:bookworm-slim\nFROM $BASE\nCOPY ["a b", "/x"]\nCOPY ["plain", "/y"]\nADD added /z\n'
        )
        (folder / "link").symlink_to("plain")
        made = await provider.prepare(ImageRequest(context=folder, dockerfile=folder / "Dockerfile"))
        box = await provider.start(made, StartRequest(name="copies"))
        assert (await box.exec(["cat", "/x", "/y", "/z"])).stdout == b"a b\nplain\nadded\n"
        assert "empty folders not: link" in made.notices[0]
        await box.stop()

    def test_what_the_sdk_cannot_copy_is_refused_by_line(self, spec: SandboxSpec, tmp_path: Path) -> None:
        (tmp_path / "Dockerfile").write_text('FROM x\nCOPY ["a", "/b"]\nCOPY --chmod=755 \\\n  $WHAT /c\nCOPY d /e\n')
        with pytest.raises(CapabilityMissing, match="line 3: Modal cannot build it"):
            spec.refuse({}, os.environ, ImageRequest(dockerfile=tmp_path / "Dockerfile"))

    async def test_what_does_not_fit_is_sent_as_what_does(
        self, provider: SandboxProvider, image: ImageRef, cloud: Remote
    ) -> None:
        box = await provider.start(image, StartRequest(name="small", resources=WIRE.too_much))
        sent = cloud.state()["sandboxes"][box.info.id]["resources"]
        assert sent["memory_mb"] == sent["memory_mb_max"] == 128 and sent["milli_cpu"] == sent["milli_cpu_max"] == 125
        machine = box._machine
        await box.stop()
        await machine.delete()  # once more is no failure

    async def test_regions_and_limits_are_sent(self, open_provider, image: ImageRef, cloud: Remote) -> None:
        provider = open_provider(region="us-east, eu-west", cpus="1", max_memory_mb="2048")
        asked = Resources(memory_mb=9000)
        box = await provider.start(image, StartRequest(name="placed", resources=asked, expires_after=1800))
        sent = cloud.state()["sandboxes"][box.info.id]
        assert sent["scheduler_placement"]["regions"] == ["us-east", "eu-west"] and sent["timeout_secs"] == 1800
        assert sent["resources"]["memory_mb_max"] == 2048 and "at most 2048 MB" in "\n".join(box.info.notices)
        await box.stop()

    async def test_a_box_that_hears_nothing_of_its_host_ends_itself(
        self, image: ImageRef, cloud: Remote, tmp_path: Path, cloud_cache: Path
    ) -> None:
        """The host's sign of life is a byte to the box's main process, three times within what it waits for."""
        from benchflow_sandbox_modal.provider import ModalVendor
        from benchflow_sandbox_modal.settings import ModalSettings

        context = SandboxContext(work_dir=tmp_path, cache_dir=cloud_cache)
        soon = replace(ModalSettings.of(os.environ), idle_seconds=3.0)
        provider = BoxProvider(context, ModalVendor(context, soon))
        silent, heard = [await provider.start(image, StartRequest(name=name)) for name in ("silent", "heard")]
        silent._machine._alive.cancel()
        for _ in range(150):
            if silent.info.id not in cloud.boxes:
                break
            await asyncio.sleep(0.1)
        assert cloud.boxes == [heard.info.id]
        await provider.close()
