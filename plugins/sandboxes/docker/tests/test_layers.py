"""Agents' installs: once per base image, on every kind of it."""

from __future__ import annotations

import os
import secrets
from collections.abc import Awaitable, Callable

import pytest
from benchflow_layers import NODE, NODE_VERSION, npm_layers

from benchflow_core.contracts import ImageRequest, Layer, Lease, Runtime, SandboxProvider, StartRequest
from benchflow_core.errors import BuildError, CapabilityMissing, ConfigurationError
from benchflow_sandbox_docker.engine.api import EngineClient

pytestmark = pytest.mark.docker

Task = Callable[..., ImageRequest]
Open = Callable[[], SandboxProvider]
BASES = ("debian:bookworm-slim", "ubuntu:24.04", "python:3.12-slim", "alpine:3.20", "fedora:40")


def _layer(**more: object) -> Layer:
    name = secrets.token_hex(5)
    install = (
        ("python3", "-c", "import sys, ssl; open('{prefix}/version', 'w').write(sys.version)"),
        ("sh", "-c", "od -An -N8 -tx8 /dev/urandom >{prefix}/stamp"),
    )
    fields = {"install": install, "runtimes": (Runtime("python", "3.9"),), **more}
    return Layer(key=f"test-{name}@1", prefix=f"/opt/benchflow/test-{name}", **fields)  # type: ignore[arg-type]


async def _read(provider: SandboxProvider, request: ImageRequest, layer: Layer, name: str) -> str:
    box = await provider.start(await provider.prepare(request, (layer,)), StartRequest(name="layers"))
    try:
        done = await box.exec(["cat", f"{layer.prefix}/{name}"])
        assert done.exit_code == 0, done.stderr
        return done.stdout.decode()
    finally:
        await box.stop()


@pytest.mark.parametrize("base", BASES)
async def test_python_runtime_installs_and_runs_on_any_base(
    provider: SandboxProvider, engine: EngineClient, base: str
) -> None:
    if await engine.image(base) is None:
        pytest.skip(f"{base} is not here")
    layer = _layer(files={"run": b"#!/bin/sh\nexec /opt/benchflow/box/python/bin/python3 -c 'print(6 * 7)'\n"})
    image = await provider.prepare(ImageRequest(image=base), (layer,))
    box = await provider.start(image, StartRequest(name="any"))
    assert (await box.exec([f"{layer.prefix}/run"])).stdout == b"42\n"
    version = (await box.exec([image.runtimes["python"], "-c", "import sys; print(sys.executable)"])).stdout.decode()
    assert version.strip() == image.runtimes["python"], "what it starts again is itself"


async def test_a_crash_on_musl_names_the_library_and_what_to_do(provider: SandboxProvider) -> None:
    """What was built for a newer C library than the image's ends like this."""
    crash = (("sh", "-c", "kill -SEGV $$"),)
    with pytest.raises(CapabilityMissing, match=r"sh crashes on this image, whose C library is musl 1\.2"):
        await provider.prepare(ImageRequest(image="alpine:3.20"), (_layer(install=crash),))
    with pytest.raises(BuildError, match="sh ended with -11"):
        await provider.prepare(ImageRequest(image="debian:bookworm-slim"), (_layer(install=crash),))


if "BENCHFLOW_SLOW_AGENTS" in os.environ:  # downloads Node; in CI the agents' own tests do

    @pytest.mark.parametrize("base", ["alpine:3.20", "fedora:40"])
    async def test_node_and_a_package_on_an_image_without_them(provider: SandboxProvider, base: str) -> None:
        prefix = f"/opt/benchflow/test-{secrets.token_hex(5)}"
        image = await provider.prepare(ImageRequest(image=base), npm_layers(prefix, "is-odd@3.0.1"))
        box = await provider.start(image, StartRequest(name="node"))
        script = f"console.log(require('{prefix}/node_modules/is-odd')(7), process.version)"
        done = await box.exec([NODE, "-e", script])
        assert done.stdout.decode().split() == ["true", f"v{NODE_VERSION}"], done


async def test_install_runs_once_for_all_tasks_on_one_base(open_provider: Open, task: Task) -> None:
    """Not once per task: their images differ, the base does not."""
    layer = _layer()
    tasks = [task(f"FROM debian:bookworm-slim\nRUN echo {n} >/number\n") for n in range(2)]
    stamps = {await _read(open_provider(), request, layer, "stamp") for request in tasks}
    assert len(stamps) == 1
    other = task("FROM python:3.12-slim\n")
    assert await _read(open_provider(), other, layer, "stamp") not in stamps, "another base is another install"


async def test_later_layers_see_earlier_ones(provider: SandboxProvider) -> None:
    first = _layer(install=(), files={"tool": b"#!/bin/sh\necho from the first\n"})
    second = _layer(install=(("sh", "-c", f"{first.prefix}/tool >{{prefix}}/said"),))
    image = await provider.prepare(ImageRequest(image="debian:bookworm-slim"), (first, second))
    box = await provider.start(image, StartRequest(name="two"))
    assert (await box.exec(["cat", f"{second.prefix}/said"])).stdout == b"from the first\n"


async def test_virtual_environment_of_our_python_works(provider: SandboxProvider) -> None:
    layer = _layer(install=(("python3", "-m", "venv", "--without-pip", "{prefix}/env"),))
    image = await provider.prepare(ImageRequest(image="debian:bookworm-slim"), (layer,))
    box = await provider.start(image, StartRequest(name="venv"))
    done = await box.exec([f"{layer.prefix}/env/bin/python", "-c", "import sys; print(sys.prefix)"])
    assert done.stdout.decode().strip() == f"{layer.prefix}/env", done.stderr


@pytest.mark.parametrize("prefix", ["relative/path", "/top", "/opt/benchflow/box/x", "/opt/benchflow"])
async def test_prefix_must_be_a_folder_of_its_own(provider: SandboxProvider, prefix: str) -> None:
    with pytest.raises(ConfigurationError, match="prefix"):
        await provider.prepare(ImageRequest(image="debian:bookworm-slim"), (Layer(key="x@1", prefix=prefix),))


async def test_file_outside_the_prefix_is_refused(provider: SandboxProvider) -> None:
    with pytest.raises(ConfigurationError, match="outside"):
        await provider.prepare(ImageRequest(image="debian:bookworm-slim"), (_layer(files={"../x": b""}),))


async def test_runtime_that_is_not_brought_is_refused(provider: SandboxProvider) -> None:
    for runtime in (Runtime("node", "20"), Runtime("python", "99.0")):
        with pytest.raises(CapabilityMissing, match=runtime.name):
            await provider.prepare(ImageRequest(image="debian:bookworm-slim"), (), (runtime,))


async def test_layer_whose_volume_was_pruned_is_made_again(
    open_provider: Open, engine: EngineClient, mark: str, find_leases: Callable[[str], Awaitable[list[Lease]]]
) -> None:
    layer, request = _layer(), ImageRequest(image="debian:bookworm-slim")
    first = await _read(open_provider(), request, layer, "stamp")
    for lease in await find_leases(mark):
        if lease.kind == "volume":
            await engine.remove_volume(lease.id.partition(":")[2])
    assert await _read(open_provider(), request, layer, "stamp") != first


async def test_box_starts_although_our_python_was_pruned(provider: SandboxProvider, engine: EngineClient) -> None:
    """Between two boxes of one job: the engine would mount an empty volume of that name."""
    image = await provider.prepare(ImageRequest(image="debian:bookworm-slim"))
    box = await provider.start(image, StartRequest(name="first"))
    mounts = (await engine.inspect(box.info.id))["Mounts"]
    (name,) = [mount["Name"] for mount in mounts if mount["Destination"] == "/opt/benchflow/box"]
    await box.stop()
    await engine.remove_volume(name)
    again = await provider.start(image, StartRequest(name="second"))
    assert (await again.exec(["echo", "up"])).stdout == b"up\n"
