"""Broken images, starts, stops and leases."""

from __future__ import annotations

import asyncio
import atexit
import os
import uuid
from dataclasses import replace

from benchflow_core.contracts import ImageRef
from benchflow_core.errors import BuildError, SandboxStartError
from kit_defects.wrap import Box, Provider, defect


@defect("test_image_reference_survives_json")
class CarriesLiveObjects(Provider):
    async def prepare(self, request, layers=(), runtimes=()):
        return replace(await super().prepare(request, layers, runtimes), meta={"client": object()})


@defect("test_substitution_is_said")
class SubstitutesInSilence(Provider):
    async def prepare(self, request, layers=(), runtimes=()):
        return replace(await super().prepare(request, layers, runtimes), notices=())


@defect("test_image_that_cannot_be_had_is_refused")
class AlwaysSubstitutes(Provider):
    async def prepare(self, request, layers=(), runtimes=()):
        return await super().prepare(replace(request, allow_substitute=True), layers, runtimes)


@defect("test_prepare_is_cached")
class BuildsEveryTime(Provider):
    async def prepare(self, request, layers=(), runtimes=()):
        return replace(await super().prepare(request, layers, runtimes), digest=uuid.uuid4().hex)


@defect("test_python_runtime_runs")
class PointsToTheWrongPython(Provider):
    async def prepare(self, request, layers=(), runtimes=()):
        return replace(await super().prepare(request, layers, runtimes), runtimes={"python": "/bin/false"})


@defect("test_impossible_runtime_is_refused")
class PromisesAnyRuntime(Provider):
    async def prepare(self, request, layers=(), runtimes=()):
        return await super().prepare(request, layers)


@defect("test_layer_files_and_commands", base="local")
class ForgetsLayerFiles(Provider):
    async def prepare(self, request, layers=(), runtimes=()):
        return await super().prepare(request, [replace(layer, files={}, install=()) for layer in layers], runtimes)


@defect("test_layer_is_read_only_and_shared_by_nobody", base="local")
class CopiesLayersIn(Provider):
    async def prepare(self, request, layers=(), runtimes=()):
        self.layers = layers
        return await super().prepare(request, (), runtimes)

    async def start(self, image, request):
        box = await super().start(image, request)
        for layer in self.layers:
            for name, content in layer.files.items():
                script = 'mkdir -p "$1"; cat >"$1/$2"'
                await box.exec(["sh", "-c", script, "sh", layer.prefix, name], stdin=content)
        return box


@defect("test_equal_layers_are_built_once", base="local")
class NeverFindsALayer(Provider):
    async def prepare(self, request, layers=(), runtimes=()):
        fresh = [replace(layer, key=f"{layer.key}-{uuid.uuid4().hex}") for layer in layers]
        return await super().prepare(request, fresh, runtimes)


@defect("test_failed_layer_is_an_error_every_time", base="local")
class ForgivesOnce(Provider):
    failed = False

    async def prepare(self, request, layers=(), runtimes=()):
        try:
            return await super().prepare(request, layers, runtimes)
        except BuildError:
            if self.failed:
                return await super().prepare(request, (), runtimes)
            self.failed = True
            raise


@defect("test_cancelled_prepare_can_be_repeated", base="local")
class TakesHalfALayerForAWhole(Provider):
    begun: frozenset[str] = frozenset()

    async def prepare(self, request, layers=(), runtimes=()):
        halves = [replace(layer, install=()) if layer.key in self.begun else layer for layer in layers]
        self.begun |= {layer.key for layer in layers}
        return await super().prepare(request, halves, runtimes)


@defect("test_box_tells_what_it_is")
class HasNoHome(Box):
    @property
    def info(self):
        return replace(self.inner.info, users=("somebody",))


@defect("test_working_directory_of_the_request_is_made_and_used")
class IgnoresTheRequestedDirectory(Provider):
    async def start(self, image, request):
        return await super().start(image, replace(request, workdir=None))


@defect("test_parallel_starts")
class StartsOneForAll(Provider):
    box = None

    async def start(self, image, request):
        self.box = self.box or await super().start(image, request)
        return self.box


@defect("test_stop_ends_every_process_and_can_be_repeated")
class DoesNotStop(Box):
    async def stop(self): ...


@defect("test_stop_while_a_command_runs")
class WillNotStopWhenBusy(Box):
    running = 0

    async def exec(self, argv, **options):
        self.running += 1
        try:
            return await super().exec(argv, **options)
        finally:
            self.running -= 1

    async def stop(self):
        if self.running:
            raise RuntimeError("busy")
        await super().stop()


@defect("test_close_stops_what_still_runs")
class LeavesBoxesRunning(Provider):
    async def start(self, image, request):
        box = await super().start(image, request)
        atexit.register(_remove, box.info.id)
        return box

    async def close(self): ...


def _remove(identity: str) -> None:
    from benchflow_sandbox_folder import leases

    leases.remove(identity)


@defect("test_cancelled_start_leaves_nothing")
class StartsRegardless(Provider):
    async def start(self, image, request):
        async def later():
            await asyncio.sleep(0.2)
            return await self.inner.start(image, request)

        return Box(await asyncio.shield(later()))


@defect("test_failed_start_leaves_nothing")
class CleansUpNothing(Provider):
    async def start(self, image, request):
        if image.ref.startswith("no-such"):
            await self.inner.start(ImageRef(ref="this-machine"), request)
            raise SandboxStartError("no such image")
        return await super().start(image, request)


@defect("test_stopped_boxes_leave_no_files_and_descriptors test_a_thousand_commands_in_one_box")
class LeaksDescriptors(Box):
    def __init__(self, inner):
        super().__init__(inner)
        os.open("/dev/null", os.O_RDONLY)

    async def exec(self, argv, **options):
        os.open("/dev/null", os.O_RDONLY)
        return await super().exec(argv, **options)


@defect("test_leases_show_live_boxes_with_their_labels", lease=lambda lease: replace(lease, owner_alive=False))
class TakesOwnersForDead(Provider): ...


@defect("test_hundred_boxes_one_after_the_other_and_thirty_at_once")
class TiresAfterFiftyBoxes(Provider):
    count = 0

    async def start(self, image, request):
        self.count += 1
        if self.count > 50:
            raise SandboxStartError("tired")
        return await super().start(image, request)
