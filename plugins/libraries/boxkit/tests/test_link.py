"""The lasting stream: nothing is lost or doubled, wherever a connection breaks."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
from collections.abc import Callable, Sequence

import pytest
from benchflow_testing_kit.suite import same

from benchflow_boxkit.inside import link
from benchflow_boxkit.link import Link
from benchflow_core.errors import SandboxLost, TransportError


class Pipe:
    """One connection in memory; breaks after so many bytes towards the host, or garbles what is written."""

    def __init__(self, breaks_after: int, garble: Callable[[bytes], bytes] | None = None) -> None:
        self.garble = garble
        self.to_host: asyncio.Queue[bytes] = asyncio.Queue()
        self.to_box: asyncio.Queue[bytes] = asyncio.Queue()
        self.left = breaks_after
        self.broken = False

    async def read(self, limit: int = 65536) -> bytes:
        data = b"" if self.broken else await self.to_host.get()
        self.left -= len(data)
        if self.left <= 0:
            self.broken = True
            self.to_box.put_nowait(b"")
        return data

    async def write(self, data: bytes) -> None:
        if self.broken:
            raise TransportError("broken")
        self.to_box.put_nowait(self.garble(data) if self.garble is not None and len(data) > 10_000 else data)

    async def close(self) -> None:
        self.broken = True
        self.to_host.put_nowait(b"")
        self.to_box.put_nowait(b"")


class Echo:
    """The box's side: sends every byte back, over as many connections as it takes."""

    def __init__(self, breaks: list[int], garbles: Sequence[Callable[[bytes], bytes]] = ()) -> None:
        self.kept, self.arriving, self.breaks = link.UnconfirmedData(), link.Incoming(), breaks
        self.garbles = list(garbles)
        self.tasks: list[asyncio.Task[None]] = []

    async def connect(self) -> Pipe:
        garble = self.garbles.pop(0) if self.garbles else None
        pipe = Pipe(self.breaks.pop(0) if self.breaks else 1 << 40, garble)
        self.arriving.renew()
        pipe.to_host.put_nowait(b"$ noise of a shell\r\n" + link.MARK[:5])
        pipe.to_host.put_nowait(link.MARK[5:] + link.greeting({"received": self.arriving.received}))
        self.tasks.append(asyncio.ensure_future(self.serve(pipe)))
        return pipe

    async def serve(self, pipe: Pipe) -> None:
        with contextlib.suppress(link.ProtocolError):
            await self.answer(pipe)
        await pipe.close()

    async def answer(self, pipe: Pipe) -> None:
        greeted = False
        while data := await pipe.to_box.get():
            for kind, body in self.arriving.feed(data):
                if kind == link.PIECE:
                    start = self.kept.end
                    self.kept.add(body)
                    if greeted:
                        pipe.to_host.put_nowait(link.packet(link.PIECE, body, start))
                elif kind == link.CONFIRM:
                    self.kept.confirm(link.COUNT.unpack(body)[0])
                else:
                    greeted = True
                    count = int(json.loads(body)["received"])
                    self.kept.confirm(count)
                    for part in list(self.kept.since(count)):
                        pipe.to_host.put_nowait(link.packet(link.PIECE, part, count))
                        count += len(part)
            if due := self.arriving.due():
                pipe.to_host.put_nowait(due)


@pytest.mark.parametrize("seed", range(6))
async def test_every_byte_arrives_once_and_in_order(seed: int) -> None:
    chance = random.Random(seed)
    await _echo(Echo([chance.randrange(50, 900_000) for _ in range(5)]), chance)


@pytest.mark.parametrize(
    "garble",
    [
        lambda data: data + data,
        lambda data: data[:4000] + data[3000:],
        lambda data: data[:4000] + data[4001:],
        lambda data: data[:-1] + bytes([data[-1] ^ 1]),
    ],
    ids=["sent twice", "some sent twice", "a byte lost", "a byte changed"],
)
async def test_what_a_client_mixes_up_is_noticed(garble: Callable[[bytes], bytes]) -> None:
    """A vendor's client that tries a half-done write again may send some of it twice."""
    await _echo(Echo([], [garble, garble]), random.Random(1))


async def _echo(box: Echo, chance: random.Random) -> None:
    data = chance.randbytes(3_000_000)
    stream = Link(box.connect, "test")
    async with asyncio.timeout(15):  # a stream that breaks stands still, on either side
        await stream.open()
        got = bytearray()

        async def receive() -> None:
            async for piece in stream.pieces():
                got.extend(piece)
                if len(got) >= len(data):
                    return

        receiving = asyncio.ensure_future(receive())
        at = 0
        while at < len(data):
            size = chance.randrange(1, 60_000)
            stream.send(data[at : at + size])
            await stream.drain()
            at += size
        await receiving
    same(bytes(got), data)
    assert stream.connections >= 2, "the test broke no connection"
    await stream.close()
    for task in box.tasks:
        task.cancel()


async def test_a_box_that_is_gone_ends_the_stream() -> None:
    box = Echo([400])
    stream = Link(box.connect, "test")
    await stream.open()

    async def gone() -> Pipe:
        raise SandboxLost("gone")

    stream._connect = gone
    stream.send(b"x" * 1000)
    async with asyncio.timeout(10):
        async for _ in stream.pieces():
            pass
    assert stream.failure == "gone"


async def test_a_command_that_does_not_answer_is_said() -> None:
    async def connect() -> Pipe:
        pipe = Pipe(1 << 40)
        pipe.to_host.put_nowait(b"sh: python3: not found\n")
        pipe.to_host.put_nowait(b"")
        return pipe

    with pytest.raises(TransportError, match="python3: not found"):
        await Link(connect, "box 1").open()


async def test_a_box_that_says_nothing_is_said_to_be_late() -> None:
    pipe = Pipe(1 << 40)

    async def connect() -> Pipe:
        return pipe

    with pytest.raises(TransportError, match=r"box 1: no supervisor answers within 0\.05 s"):
        await Link(connect, "box 1", greeting_seconds=0.05).open()
    assert pipe.broken, "the connection was left open"


def test_what_was_never_sent_is_not_confirmed() -> None:
    kept = link.UnconfirmedData()
    kept.add(b"abc")
    with pytest.raises(link.ProtocolError):
        kept.confirm(4)
    kept.confirm(3)
    kept.confirm(1)
    assert (kept.size, list(kept.since(3))) == (0, [])
