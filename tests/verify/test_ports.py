"""Ports of the agent's box in a verifier's box that has no way of its own to show them."""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager

import pytest
from benchflow_wires import forwarded

from benchflow_core.contracts import HostEndpoint, StartRequest
from benchflow_core.gateway.expose import show

pytestmark = pytest.mark.asyncio(loop_scope="module")

SERVE = "cd /app && echo hello > page && (python3 -m http.server 8123 >/dev/null 2>&1 & ) && for i in $(seq 200); do (: < /dev/tcp/127.0.0.1/8123) 2>/dev/null && break; sleep 0.05; done"
FETCH = "import urllib.request as u; print(u.urlopen('http://127.0.0.1:8123/page', timeout=10).read().decode().strip())"


class WithoutExposure:
    """A real box, as a sandbox offers it that leaves `expose_to_box` to the core."""

    def __init__(self, box) -> None:
        self._box = box

    def __getattr__(self, name):
        return getattr(self._box, name)

    async def expose_to_box(self, endpoint: HostEndpoint, *, port: int | None = None) -> str:
        raise NotImplementedError


@asynccontextmanager
async def verifier_box(arena):
    box = await arena.provider.start(arena.image, StartRequest(name="verifier", workdir="/app"))
    try:
        yield WithoutExposure(box)
    finally:
        await box.stop()


@asynccontextmanager
async def carried(agent, box, runtimes):
    async with AsyncExitStack() as stack:

        async def show_port(endpoint, port):
            return await show(stack, box, endpoint, port, runtimes)

        yield await stack.enter_async_context(forwarded(agent, [8123], show_port))


async def test_a_port_is_carried_by_the_core(arena):
    async with arena.agent(SERVE) as agent, verifier_box(arena) as box:
        runtimes = arena.image.runtimes or {"python": "/usr/bin/python3"}
        async with carried(agent, box, runtimes) as ports:
            assert ports == [8123]
            done = await box.exec((runtimes["python"], "-c", FETCH))
            assert (done.stdout, done.exit_code) == (b"hello\n", 0), done.stderr
        after = await box.exec((runtimes["python"], "-c", FETCH))
        assert after.exit_code != 0, "a forward ends with the verifier"


async def test_a_box_without_python_has_no_forward_and_says_so(arena):
    async with arena.agent(SERVE) as agent, verifier_box(arena) as box, carried(agent, box, {}) as ports:
        assert ports == []
