"""Access views and resource limits."""

from __future__ import annotations

from benchflow_core.contracts import AccessView, Resources, Sandbox
from benchflow_testing_kit.sandbox.base import SandboxSuite
from benchflow_testing_kit.sandbox.bench import Bench, ok, sh
from benchflow_testing_kit.suite import needs, soak

__all__ = ["LimitTests"]


class LimitTests(SandboxSuite):
    """What is declared is enforced, also against root in the box."""

    @needs("access-view")
    async def test_hidden_paths_cannot_be_read(self, box: Sandbox, scratch: str) -> None:
        await ok(box, 'mkdir "$1/dir"; echo secret >"$1/dir/f"; echo secret >"$1/file"; echo open >"$1/open"', scratch)
        view = AccessView(hidden=(f"{scratch}/dir", f"{scratch}/file", f"{scratch}/not-there"))
        peek = """
            umount "$1/dir" "$1/file" 2>/dev/null; mount --bind / /mnt 2>/dev/null
            cat "$1/dir/f" "$1/file" "/mnt$1/file" "/proc/1/root$1/file" "/proc/1/root$1/dir/f" 2>/dev/null
            cat "$1/open" """
        assert (await sh(box, peek, scratch, view=view)).stdout == b"open\n"
        process = await box.spawn(["sh", "-c", peek, "sh", scratch], view=view)
        assert await process.read() == b"open\n"
        assert await ok(box, 'cat "$1/dir/f" "$1/file"', scratch) == "secret\nsecret\n", "only that process is limited"

    @needs("access-view")
    async def test_read_only_paths_cannot_be_changed(self, box: Sandbox, scratch: str) -> None:
        await ok(box, 'mkdir -p "$1/ro/rw"; echo old >"$1/ro/f"; echo old >"$1/ro/rw/f"', scratch)
        view = AccessView(read_only=(f"{scratch}/ro",), writable=(f"{scratch}/ro/rw",))
        script = """
            mount -o remount,rw,bind "$1/ro" 2>/dev/null; umount "$1/ro" 2>/dev/null
            cat "$1/ro/f"; echo new >"$1/ro/f"; rm "$1/ro/f"; echo x >"$1/ro/new"; mv "$1/ro" "$1/moved"
            chmod 777 "$1/ro/f"; echo new >"$1/ro/rw/f"; echo ok >"$1/beside" """
        assert (await sh(box, script, scratch, view=view)).stdout == b"old\n"
        assert await ok(box, 'cd "$1"; ls ro; cat ro/f ro/rw/f beside', scratch) == "f\nrw\nold\nnew\nok\n"
        await ok(box, 'echo again >"$1/ro/f"', scratch)
        whole = AccessView(read_only=("/",), writable=(f"{scratch}/ro/rw",))
        await sh(box, 'echo x >"$1/ro/rw/whole"; echo x >"$1/whole"; echo x >/whole', scratch, view=whole)
        assert await ok(box, 'ls -d "$1/ro/rw/whole" "$1/whole" /whole 2>/dev/null || true', scratch) == (
            f"{scratch}/ro/rw/whole\n"
        )

    @needs("limit-memory")
    async def test_memory_is_limited(self, bench: Bench) -> None:
        box = await bench.start(resources=Resources(memory_mb=128))
        within = await sh(box, "dd if=/dev/zero of=/dev/null bs=32M count=1 && echo fine")
        assert within.stdout == b"fine\n" and not within.oom_killed and not box.info.limits_hit
        over = await sh(box, "dd if=/dev/zero of=/dev/null bs=600M count=1 && echo fine", timeout=60)
        assert b"fine" not in over.stdout and not over.timed_out
        assert over.oom_killed, "the result says that memory was the reason"
        assert "memory" in box.info.limits_hit, "and the box remembers it"

    @needs("limit-pids")
    async def test_processes_are_limited(self, bench: Bench) -> None:
        box = await bench.start(resources=Resources(pids=40))
        script = "i=0; while [ $i -lt 120 ]; do (sleep 5; echo survived) & i=$((i+1)); done 2>/dev/null; wait"
        done = await sh(box, script, timeout=60)
        assert done.stdout.count(b"survived") <= 40
        assert "pids" in box.info.limits_hit, "the box remembers it"
        await box.stop()

    @needs("limit-storage")
    async def test_storage_is_limited(self, bench: Bench) -> None:
        box = await bench.start(resources=Resources(storage_mb=64))
        folder = await bench.scratch(box)
        await ok(box, 'dd if=/dev/zero of="$1/small" bs=1M count=16', folder)
        assert (await sh(box, 'dd if=/dev/zero of="$1/big" bs=1M count=200', folder)).exit_code != 0

    @soak
    @needs("limit-cpu")
    async def test_processor_time_is_limited(self, bench: Bench) -> None:
        """Two busy loops for four seconds under a tenth of a processor: half a second of work, give or take."""
        box = await bench.start(resources=Resources(cpus=0.1))
        burn = "(while :; do :; done) & a=$!; (while :; do :; done) & b=$!; sleep 4; kill $a $b; wait; times"
        user, system = (await ok(box, burn, timeout=60)).splitlines()[1].split()
        assert 0.05 < _seconds(user) + _seconds(system) < 1.0


def _seconds(text: str) -> float:
    """`0m1.98s`, as the shell prints it."""
    minutes, _, seconds = text.rstrip("s").partition("m")
    return 60 * float(minutes) + float(seconds.replace(",", "."))
