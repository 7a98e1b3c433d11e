"""`prepare`: images, layers, runtimes, and their cache."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import uuid

import pytest

from benchflow_core.contracts import ImageRef, ImageRequest, Layer, Runtime
from benchflow_core.errors import BenchflowError, BuildError
from benchflow_testing_kit.sandbox.base import SandboxSuite
from benchflow_testing_kit.sandbox.bench import Bench, ok, sh

__all__ = ["ImageTests"]


class ImageTests(SandboxSuite):
    """The same request gives the same image; layers are made once and cannot be changed from inside."""

    async def test_image_reference_survives_json(self, bench: Bench) -> None:
        copy = ImageRef(**json.loads(json.dumps(dataclasses.asdict(bench.image))))
        assert await ok(await bench.start(copy), "echo up") == "up\n"

    async def test_substitution_is_said(self, bench: Bench) -> None:
        assert bench.image.fidelity in ("exact", "substituted")
        if bench.image.fidelity == "substituted":
            assert bench.image.notices, "a notice tells the user what was substituted by what"

    async def test_image_that_cannot_be_had_is_refused(self, bench: Bench) -> None:
        """Without leave to substitute, another file system than the one asked for is a refusal."""
        with pytest.raises(BenchflowError) as caught:
            await bench.provider.prepare(
                ImageRequest(image="benchflow.invalid/no-such-image:0", allow_substitute=False)
            )
        assert "no-such-image" in str(caught.value), "the message names the image"

    async def test_prepare_is_cached(self, bench: Bench) -> None:
        first = await bench.provider.prepare(bench.request)
        second = await bench.provider.prepare(bench.request)
        assert (first.ref, first.digest) == (second.ref, second.digest)

    async def test_python_runtime_runs(self, bench: Bench) -> None:
        path = bench.python()
        box = await bench.start()
        assert path.startswith("/")
        done = await box.exec([path, "-c", "import sys, json, ssl; print(sys.version_info >= (3, 9))"])
        assert (done.stdout, done.stderr) == (b"True\n", b"")

    async def test_impossible_runtime_is_refused(self, bench: Bench) -> None:
        with pytest.raises(BenchflowError):
            await bench.provider.prepare(bench.request, (), (Runtime("no-such-runtime", "1.0"),))

    async def test_layer_files_and_commands(self, bench: Bench) -> None:
        layer = _layer(
            install=(
                ("sh", "-c", "echo made >{prefix}/made; mkdir -p {prefix}/bin"),
                ("cp", "{prefix}/run", "{prefix}/bin/run"),
            ),
            files={"run": b"#!/bin/sh\necho layer\n", "data/ü.txt": b"\x00\xff"},
        )
        image = await bench.provider.prepare(bench.request, (layer,))
        box = await bench.start(image)
        assert await ok(box, 'cat "$1/made"; "$1/bin/run"; "$1/run"', layer.prefix) == "made\nlayer\nlayer\n"
        assert (await sh(box, 'cat "$1"', f"{layer.prefix}/data/ü.txt")).stdout == b"\x00\xff"
        assert (await sh(box, '[ -x "$1" ]', f"{layer.prefix}/data/ü.txt")).exit_code != 0

    async def test_layer_is_read_only_and_shared_by_nobody(self, bench: Bench) -> None:
        layer = _layer(files={"file": b"original"})
        image = await bench.provider.prepare(bench.request, (layer,))
        first, second = await bench.start(image), await bench.start(image)
        await sh(first, 'echo changed >"$1/file"; rm -f "$1/file"; echo x >"$1/new"', layer.prefix)
        assert await ok(second, 'cat "$1/file"; ls "$1"', layer.prefix) == "originalfile\n"
        assert await ok(first, 'cat "$1/file"; ls "$1"', layer.prefix) == "originalfile\n"

    async def test_equal_layers_are_built_once(self, bench: Bench) -> None:
        """Eight at once, then again from another provider on the same cache."""
        layer = _layer(install=(("sh", "-c", "sleep 1; od -An -N8 -tx8 /dev/urandom >{prefix}/stamp"),))
        prepare = bench.provider.prepare
        images = await asyncio.gather(*(prepare(bench.request, (layer,)) for _ in range(8)))
        images.append(await bench.another_provider().prepare(bench.request, (layer,)))
        stamps = {
            await ok(await bench.start(image), 'cat "$1/stamp"', layer.prefix) for image in (images[0], images[-1])
        }
        assert len(stamps) == 1 and stamps != {""}
        assert len({image.ref for image in images}) == 1

    async def test_failed_layer_is_an_error_every_time(self, bench: Bench) -> None:
        layer = _layer(install=(("sh", "-c", "echo the reason >&2; exit 9"),))
        for _ in range(2):
            with pytest.raises(BuildError) as caught:
                await bench.provider.prepare(bench.request, (layer,))
            assert "the reason" in str(caught.value) + str(caught.value.details), "the log's tail says why"
            assert layer.key in str(caught.value), "the message names the layer"

    async def test_cancelled_prepare_can_be_repeated(self, bench: Bench) -> None:
        layer = _layer(install=(("sh", "-c", "echo begun >{prefix}/begun; sleep 2; echo done >{prefix}/done"),))
        task = asyncio.create_task(bench.provider.prepare(bench.request, (layer,)))
        await asyncio.sleep(1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        image = await bench.provider.prepare(bench.request, (layer,))
        assert await ok(await bench.start(image), 'cat "$1/done"', layer.prefix) == "done\n"


def _layer(install: tuple[tuple[str, ...], ...] = (), files: dict[str, bytes] | None = None) -> Layer:
    name = uuid.uuid4().hex[:10]
    return Layer(key=f"kit-{name}@1", prefix=f"/opt/benchflow/kit-{name}", install=install, files=files or {})
