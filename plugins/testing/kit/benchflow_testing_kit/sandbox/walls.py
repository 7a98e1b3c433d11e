"""Walls: between boxes, towards the host, and around secrets."""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from pathlib import Path

from benchflow_core.contracts import Sandbox
from benchflow_testing_kit.host import host_processes
from benchflow_testing_kit.sandbox.base import SandboxSuite
from benchflow_testing_kit.sandbox.bench import Bench, ok, sh
from benchflow_testing_kit.sandbox.net import answers, host_addresses, host_server, serve_in

__all__ = ["WallTests"]


class WallTests(SandboxSuite):
    """Rollouts cannot see or reach each other, nor the host."""

    async def test_files_of_one_box_are_not_visible_in_another(self, bench: Bench) -> None:
        one, two = await bench.start(), await bench.start()
        name = f"kit-{uuid.uuid4().hex}"
        for folder in (one.info.workdir, "/tmp", "/var/tmp", "/dev/shm", "/root", "/etc", "/usr/lib"):
            path = f"{folder}/{name}"
            if (await sh(one, 'echo secret >"$1"', path)).exit_code == 0:
                assert (await sh(two, 'cat "$1"', path)).exit_code != 0, f"{folder} is shared"
                await sh(one, 'rm "$1"', path)

    async def test_files_of_the_host_are_not_changed(self, bench: Bench) -> None:
        box = await bench.start()
        name = f"kit-{uuid.uuid4().hex}"
        for folder in ("/tmp", "/var/tmp", "/dev/shm", "/root", "/home", "/etc", "/usr/lib", "/opt", "/"):
            if (await sh(box, 'echo x >"$1"', f"{folder}/{name}")).exit_code == 0:
                escaped = _on_host(Path(folder, name))
                await sh(box, 'rm "$1"', f"{folder}/{name}")
                assert not escaped, f"a file written to {folder} in the box appeared on the host"

    async def test_processes_of_one_box_are_not_visible_in_another(self, bench: Bench) -> None:
        one, two = await bench.start(), await bench.start()
        marker = f"kit-marker-{uuid.uuid4().hex}"
        process = await one.spawn(["sh", "-c", "echo on; while :; do sleep 1; done", marker])
        await process.read()
        assert marker in await ok(one, _COMMAND_LINES)
        assert marker not in await ok(two, _COMMAND_LINES), "a process of another box is visible"

    async def test_processes_of_the_host_are_not_visible(self, box: Sandbox) -> None:
        marker = f"kit-marker-{uuid.uuid4().hex}"
        child = await asyncio.create_subprocess_exec("sh", "-c", "while :; do sleep 1; done", marker)
        try:
            assert host_processes(marker)
            assert marker not in await ok(box, _COMMAND_LINES), "a process of the host is visible in the box"
        finally:
            child.kill()
            await child.wait()

    async def test_two_boxes_cannot_reach_each_other(self, bench: Bench) -> None:
        python = bench.python()
        one, two = await bench.start(), await bench.start()
        port, addresses = await serve_in(one, python)
        assert await answers(one, python, "127.0.0.1", port), "the server is up"
        for address in {*addresses, "127.0.0.1", "0.0.0.0"}:
            assert not await answers(two, python, address, port), f"another box reaches {address}:{port}"

    async def test_host_ports_cannot_be_reached(self, bench: Bench) -> None:
        """Bound to all addresses of the host: neither its loopback nor its own address may answer."""
        python, box = bench.python(), await bench.start()
        async with host_server("0.0.0.0") as port:
            for address in ("127.0.0.1", *host_addresses()):
                assert not await answers(box, python, address, port), f"the box reaches the host at {address}"

    async def test_cloud_metadata_cannot_be_reached(self, bench: Bench) -> None:
        box = await bench.start()
        assert not await answers(box, bench.python(), "169.254.169.254", 80)

    async def test_secrets_are_in_no_command_line(self, bench: Bench) -> None:
        box, secret = await bench.start(), f"kit-secret-{uuid.uuid4().hex}"
        env = {"KIT_API_KEY": secret}
        process = await box.spawn(["sh", "-c", "echo on; while :; do sleep 1; done"], env=env)
        await process.read()
        running = asyncio.create_task(sh(box, "while :; do sleep 1; done", env=env))
        await asyncio.sleep(0.7)
        inside, outside = await ok(box, _COMMAND_LINES), host_processes(secret)
        await process.kill()
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running
        assert secret not in inside, "a command line in the box shows a secret"
        assert not outside, f"the command line of host process {outside} shows a secret"

    async def test_secrets_do_not_stay(self, bench: Bench) -> None:
        """Once the process is gone, no other process, no description and no log of the box knows its environment."""
        box, secret = await bench.start(), f"kit-secret-{uuid.uuid4().hex}"
        assert await ok(box, 'printf %s "${KIT_API_KEY:+set}"', env={"KIT_API_KEY": secret}) == "set"
        process = await box.spawn(["cat"], env={"KIT_API_KEY": secret})
        await process.kill()
        everywhere = "for f in /proc/[0-9]*/environ /proc/[0-9]*/cmdline; do cat $f 2>/dev/null | tr '\\000' ' '; done"
        assert secret not in await ok(box, everywhere)
        leases = [repr(lease) for lease in await bench.leases()]
        assert secret not in repr(box.info) + repr(leases) + (await box.logs()).decode(errors="replace")

    async def test_host_server_is_reached_only_where_it_is_exposed(self, bench: Bench) -> None:
        python = bench.python()
        one, two = await bench.start(), await bench.start()
        async with host_server("127.0.0.1") as port:
            url = await bench.expose(one, port)
            inside = int(url.rstrip("/").rpartition(":")[2])
            assert await answers(one, python, "127.0.0.1", inside)
            assert not await answers(two, python, "127.0.0.1", inside), "exposed to one box, reachable from another"


def _on_host(path: Path) -> bool:
    try:
        return path.exists()
    except PermissionError:
        return False


_COMMAND_LINES = "for f in /proc/[0-9]*/cmdline; do cat $f 2>/dev/null | tr '\\000' ' '; echo; done"
