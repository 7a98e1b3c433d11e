"""Unix sockets of one box, reachable from another at the same path. The caller's user is told to the server's side, so
that a server that asks the kernel who calls gets the answer it would have got in its own box."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from importlib import resources
from pathlib import PurePosixPath
from typing import Final

from benchflow_core.contracts.sandboxes import Process, Sandbox
from benchflow_core.errors import BenchflowError
from benchflow_core.world.forward import forwarded

__all__ = ["listening_sockets", "shown_sockets"]

_MOST: Final = 8
_LISTENS: Final = ("00010000", "0001")
"""Flags and type of a stream socket that accepts, as the kernel lists them."""
_SHORTEST: Final = 4
_START: Final = 15.0
_LINE: Final = 200


async def listening_sockets(box: Sandbox, meant: Callable[..., bool]) -> list[str]:
    """Those that the task is about: it names the path, or what the socket is called after."""
    with contextlib.suppress(BenchflowError, OSError):
        if not await box.processes():
            return []
        done = await box.exec(("/bin/cat", "/proc/net/unix"), user="root", cwd="/", timeout=20)
        rows = [line.split(None, 7) for line in done.stdout.decode("utf-8", "replace").splitlines()]
        paths = [row[7] for row in rows if len(row) == 8 and (row[3], row[4]) == _LISTENS and row[7].startswith("/")]
        return [path for path in dict.fromkeys(paths) if meant(*_names(path))][:_MOST]
    return []


def _names(path: str) -> list[str]:
    """`/run/mysqld/mysqld.sock` is what a task means that says mysql."""
    place = PurePosixPath(path)
    words = {name.strip(".").partition(".")[0].removesuffix("d") for name in (place.name, place.parent.name)}
    return [path, place.name, *(word for word in words if len(word) >= _SHORTEST)]


@contextlib.asynccontextmanager
async def shown_sockets(
    source: Sandbox, target: Sandbox, paths: Sequence[str], runtimes: Mapping[str, str]
) -> AsyncIterator[list[str]]:
    """Carries connections from `target` to `paths` of `source` while it is open; yields those that could be."""
    shown: list[str] = []
    async with contextlib.AsyncExitStack() as stack:
        for path in paths if "python" in runtimes else ():
            with contextlib.suppress(BenchflowError, OSError, ValueError):
                port, *looks = (await _begin(stack, source, runtimes["python"], "there", path)).split()
                if await stack.enter_async_context(forwarded(source, target, [int(port)], runtimes)):
                    await _begin(stack, target, runtimes["python"], "here", path, port, *looks)
                    shown.append(path)
        yield shown


async def _begin(stack: contextlib.AsyncExitStack, box: Sandbox, python: str, *words: str) -> str:
    """Start one side; returns the line by which it says that it is ready."""
    program = resources.files("benchflow_core.world").joinpath("socket_relay.py").read_text("utf-8")
    process = await box.spawn((python, "-I", "-S", "-c", program, *words), cwd="/", user="root")
    stack.push_async_callback(_end, process)
    said = b""
    async with asyncio.timeout(_START):
        while not said.endswith(b"\n"):
            data = await process.read()
            if not data or len(said) > _LINE:
                raise ValueError("it did not start")
            said += data
    return said.decode()


async def _end(process: Process) -> None:
    with contextlib.suppress(BenchflowError, OSError):
        await process.kill()
