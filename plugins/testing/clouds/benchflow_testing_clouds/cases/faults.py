"""What a cloud does to its clients: too many requests, broken streams, boxes that die. Through the vendor's SDK."""

from __future__ import annotations

import asyncio
import os
import re
import time
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from benchflow_core.contracts import ImageRef, ImageRequest, SandboxProvider, SandboxSpec, StartRequest
from benchflow_core.errors import BenchflowError, BuildError, ConfigurationError, SandboxLost, SandboxStartError
from benchflow_testing_clouds.cases.wire import IMAGE, CloudCase, Open
from benchflow_testing_clouds.control import Remote

__all__ = ["CloudFaults", "echo"]

_REQUEST = StartRequest(name="fault")
_AT_ONCE = 4


async def echo(box: Any, size: int) -> None:
    """Through `cat` and back, byte by byte the same."""
    process = await box.spawn(["cat"])
    data = bytes(range(256)) * (size // 256)

    async def send() -> None:
        for at in range(0, len(data), 65536):
            await process.write(data[at : at + 65536])
        await process.close_stdin()

    async def receive() -> bytes:
        parts = []
        while part := await process.read():
            parts.append(part)
        return b"".join(parts)

    async with asyncio.timeout(90):
        _, got = await asyncio.gather(send(), receive())
    assert got == data and await process.wait() == 0


class CloudFaults(CloudCase):
    async def test_a_box_takes_few_requests(self, provider: SandboxProvider, image: ImageRef, cloud: Remote) -> None:
        await (await provider.start(image, _REQUEST)).stop()
        cloud.reset()
        box = await provider.start(image, _REQUEST)
        for _ in range(5):
            assert (await box.exec(["sh", "-c", "echo x"])).stdout == b"x\n"
        await box.stop()
        requests = cloud.requests
        assert requests.pop(self.wire.chatter, 0) < 40
        assert requests == self.wire.box and sum(requests.values()) <= 6

    async def test_a_broken_stream_loses_nothing(
        self, provider: SandboxProvider, image: ImageRef, cloud: Remote
    ) -> None:
        """Connections are cut in the middle of a transfer; the process never notices."""
        for fault in self.wire.cuts:
            cloud.fault(**fault)
        box = await provider.start(image, _REQUEST)
        await echo(box, 2 << 20)
        assert cloud.state()["faults"] == [], "every cut was made"
        assert (await box.exec(["sh", "-c", "exit 3"])).exit_code == 3
        await box.stop()

    async def test_a_refused_create_is_tried_again(
        self, provider: SandboxProvider, image: ImageRef, cloud: Remote
    ) -> None:
        cloud.reset()
        for status in (429, 500, 503, 429):
            cloud.fault(self.wire.create, status=status, retry_after=self.wire.wait if status == 429 else None)
        await (await provider.start(image, _REQUEST)).stop()
        assert cloud.requests[self.wire.create] == 5

    async def test_refusals_are_typed(self, open_provider: Open, image: ImageRef, cloud: Remote) -> None:
        provider = open_provider(create_tries="1")
        for row in self.wire.refusals:
            cloud.fault(self.wire.create, status=row.status, retry_after=row.retry_after, times=row.times)
            with pytest.raises(row.expected) as caught:
                await provider.start(image, _REQUEST)
            if row.retry_after:
                assert caught.value.details["retry_after"] == row.retry_after
            assert caught.value.retryable == (row.status != 401)
            assert not self._told(str(caught.value.to_json()))
        cloud.fault(self.wire.create, status=400, body="no such thing")
        with pytest.raises(SandboxStartError, match="no such thing") as refused:
            await provider.start(image, _REQUEST)
        assert not refused.value.retryable

    def _told(self, text: str) -> bool:
        return any(os.environ[name] in text for name in self.wire.secrets)

    async def test_a_slow_start_is_waited_for(self, provider: SandboxProvider, image: ImageRef, cloud: Remote) -> None:
        cloud.fault(self.wire.create, delay=1.5)
        box = await provider.start(image, _REQUEST)
        assert (await box.exec(["true"])).exit_code == 0
        assert not self._told(str(cloud.state()["sandboxes"][box.info.id])), "the credentials are in the box"
        await box.stop()

    async def test_a_box_that_dies_is_lost(self, provider: SandboxProvider, image: ImageRef, cloud: Remote) -> None:
        box = await provider.start(image, _REQUEST)
        process = await box.spawn(["sh", "-c", "echo on; sleep 600"])
        await process.read()
        if self.wire.refused_when_dead:
            cloud.fault(self.wire.refused_when_dead, die=True)
        await asyncio.to_thread(cloud.kill, box.info.id)
        async with asyncio.timeout(60):
            with pytest.raises(SandboxLost):
                await process.wait()
            with pytest.raises(SandboxLost):
                await box.exec(["true"])
        await box.stop()

    async def test_a_failed_build_names_the_reason(self, provider: SandboxProvider, tmp_path: Path) -> None:
        (tmp_path / "Dockerfile").write_text(f"FROM {IMAGE}\nRUN echo the-reason >&2; exit 9\n")
        with pytest.raises(BuildError, match="the-reason") as caught:
            await provider.prepare(ImageRequest(context=tmp_path, dockerfile=tmp_path / "Dockerfile"))
        assert "the-reason" in caught.value.details["log"]

    async def test_what_does_not_fit_is_said(self, provider: SandboxProvider, image: ImageRef) -> None:
        box = await provider.start(image, StartRequest(name="sized", resources=self.wire.too_much))
        said = "\n".join(box.info.notices)
        assert [part for part in self.wire.said if part not in said] == []
        await box.stop()

    async def test_many_creates_are_no_storm(self, open_provider: Open, image: ImageRef, cloud: Remote) -> None:
        provider = open_provider(creates_at_once=str(_AT_ONCE))
        cloud.reset()
        cloud.fault(self.wire.create, status=429, times=3, retry_after=max(0.3, self.wire.wait))
        boxes = await asyncio.gather(*(provider.start(image, StartRequest(name=f"b{n}")) for n in range(_AT_ONCE + 4)))
        await asyncio.gather(*(box.stop() for box in boxes))
        assert cloud.most[self.wire.create] <= _AT_ONCE
        assert cloud.requests[self.wire.create] == len(boxes) + 3
        assert cloud.boxes == []

    def test_wrong_options_are_refused_while_a_job_is_planned(self, spec: SandboxSpec, cloud: Remote) -> None:
        cloud.reset()
        for option in ({"colour": "blue"}, {"create_tries": "0"}, *self.wire.wrong):
            with pytest.raises(ConfigurationError, match="|".join(f"'{name}'|{name}=" for name in option)):
                spec.refuse(option, os.environ, ImageRequest(image=IMAGE))
        spec.refuse({}, os.environ, ImageRequest(image=IMAGE))
        assert cloud.requests == {}

    def test_the_page_names_the_options(self) -> None:
        if self.wire.page is None:
            pytest.skip("no page was named")
        options = import_module(f"{self.wire.package}.settings").OPTIONS
        assert set(re.findall(r"^\| `(\w+)` \|", self.wire.page.read_text(), re.MULTILINE)) == set(options)

    async def test_credentials_are_asked_for_before_anything_starts(
        self, monkeypatch: pytest.MonkeyPatch, spec: SandboxSpec, open_provider: Open, tmp_path: Path
    ) -> None:
        right = {name: os.environ[name] for name in self.wire.secrets}
        last = self.wire.secrets[-1]
        monkeypatch.setenv(last, "wrong-secret")
        found = await asyncio.to_thread(spec.check)
        assert [check.status for check in found] == ["ok", "fail"] and "wrong-secret" not in repr(found)
        monkeypatch.delenv(last)
        assert not spec.available().ok
        with pytest.raises(BenchflowError, match=self.wire.missing):
            open_provider()
        began = time.monotonic()
        assert [check.status for check in spec.check()] == ["warn"] and time.monotonic() - began < 5
        for name in self.wire.secrets:
            monkeypatch.delenv(name, raising=False)
        path, content = self.wire.login
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content(right))
        monkeypatch.setenv("HOME", str(tmp_path))
        assert spec.available().ok and [check.status for check in await asyncio.to_thread(spec.check)] == ["ok", "ok"]
