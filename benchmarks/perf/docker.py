"""Rollouts on the Docker sandbox, beside the bare engine that does the least a rollout needs, in one run.

The least: create, start, 3 execs, 2 archives in, 1 out, remove. With `--peers`, Harbor and BenchFlow from their own
packages run the same task in environments of their own (downloads several hundred megabytes, takes minutes).
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks.perf._engine import Engine, answers, archive
from benchmarks.perf._measure import Measure, main

TASK = Path(__file__).parents[2] / "examples" / "tasks" / "hello-file"
SANDBOX = "docker"
EIGHT, CONCURRENCY, IDLE = 8, 4, 64
LIMITS = {"shared": 1.6, "fresh": 2.5}


def bare_rollout(image: str) -> None:
    """The solution and the tests of the task, by hand."""
    engine = Engine()
    box = engine.create(image)
    try:
        engine.start(box)
        engine.run(box, "mkdir", "-p", "/logs/verifier", "/logs/agent", "/solution", "/tests")
        engine.put(box, "/solution", archive({"solve.sh": (TASK / "solution/solve.sh").read_bytes()}))
        engine.run(box, "bash", "/solution/solve.sh")
        tests = {path.name: path.read_bytes() for path in (TASK / "tests").iterdir() if path.is_file()}
        engine.put(box, "/tests", archive(tests))
        engine.run(box, "bash", "/tests/test.sh")
        assert b"reward.txt" in engine.get(box, "/logs/verifier")
    finally:
        engine.remove(box)
        engine.close()


def timed(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def image_of(work: Path) -> str:
    """The task's image, as anybody would build it."""
    tag = "benchflow-perf-hello"
    env = {**os.environ, "DOCKER_BUILDKIT": "0"}
    subprocess.run(["docker", "build", "-q", "-t", tag, TASK / "environment"], env=env, check=True, capture_output=True)
    return tag


async def ours_inside(work: Path, isolation: str, runs: int) -> float:
    """The fastest of several rollouts in one process, as a job runs them; the image is cached by the first."""
    from benchflow_core.rollout import Host, Rollout, RolloutConfig

    best = float("inf")
    async with Host(env={**os.environ, "BENCHFLOW_CACHE": str(work / "cache")}) as host:
        for _ in range(runs + 1):
            config = RolloutConfig(
                TASK, agent="oracle", sandbox=SANDBOX, isolation=isolation, jobs_dir=work / "jobs" / isolation
            )
            start = time.perf_counter()
            result = await (await Rollout.create(config, host)).run()
            best = min(best, time.perf_counter() - start)
            assert result.rewards == {"reward": 1.0}, result.error
    return best


def ours_eight(work: Path, isolation: str) -> float:
    jobs = work / f"eight-{isolation}"
    argv = [
        sys.executable,
        "-m",
        "benchflow_core.cli.main",
        "--quiet",
        "eval",
        "create",
        "-t",
        str(TASK),
        "-a",
        "oracle",
    ]
    argv += ["--sandbox", SANDBOX, "--isolation", isolation, "--trials", str(EIGHT), "-c", str(CONCURRENCY)]
    env = {**os.environ, "BENCHFLOW_CACHE": str(work / "cache")}
    took = timed(lambda: subprocess.run([*argv, "-o", str(jobs)], env=env, check=True, capture_output=True))
    found = [json.loads(path.read_text())["rewards"] for path in jobs.glob("*/*/result.json")]
    assert found == [{"reward": 1.0}] * EIGHT, found
    shutil.rmtree(jobs)
    return took


def bare_eight(image: str) -> float:
    def run() -> None:
        with ThreadPoolExecutor(CONCURRENCY) as pool:
            list(pool.map(bare_rollout, [image] * EIGHT))

    return timed(run)


def first_process_mb(boxes: list[str]) -> float:
    """MB that the first processes of these containers take together, shared pages divided among their users."""
    engine, total = Engine(), 0
    for box in boxes:
        pid = engine.json("GET", f"/containers/{box}/json")["State"]["Pid"]
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        total += next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    engine.close()
    return total / 1024


def idle_bare(image: str) -> float:
    """MB of the one process of an idle container, `sleep`."""
    engine = Engine()
    boxes: list[str] = []
    try:
        for _ in range(IDLE):
            boxes.append(engine.create(image))
            engine.start(boxes[-1])
        return first_process_mb(boxes) / IDLE
    finally:
        for box in boxes:
            engine.remove(box)
        engine.close()


async def idle_ours(work: Path) -> tuple[float, float]:
    """(MB of an idle box's first process, MB of this process for each)."""
    from benchflow_core.contracts import ImageRequest, SandboxContext, StartRequest
    from benchflow_core.plugins import Registry

    spec = Registry().get("sandbox", SANDBOX).spec
    context = SandboxContext(work / "idle", work / "cache", env=dict(os.environ), concurrency=16)
    context.work_dir.mkdir()
    provider = spec.open(context)
    gate = asyncio.Semaphore(16)
    try:
        folder = TASK / "environment"
        image = await provider.prepare(ImageRequest(context=folder, dockerfile=folder / "Dockerfile"))
        await (await provider.start(image, StartRequest(name="warm"))).stop()
        own = resident_mb()

        async def one(number: int) -> str:
            async with gate:
                box = await provider.start(image, StartRequest(name=f"idle-{number}"))
                assert (await box.exec(("true",))).exit_code == 0
                return str(box.info.id)

        boxes = await asyncio.gather(*(one(n) for n in range(IDLE)))
        grown = resident_mb() - own
        return await asyncio.to_thread(first_process_mb, list(boxes)) / IDLE, grown / IDLE
    finally:
        await provider.close()


def resident_mb() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1024**2


def many_files(folder: Path) -> Path:
    for number in range(2000):
        path = folder / f"d{number % 40}" / f"f{number}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(os.urandom(10_486))
    return folder


async def uploads(work: Path, image: str, source: Path, runs: int) -> tuple[float, float]:
    """(ours, `docker cp`), in turns."""
    from benchflow_core.contracts import ImageRequest, SandboxContext, StartRequest
    from benchflow_core.plugins import Registry

    spec = Registry().get("sandbox", SANDBOX).spec
    context = SandboxContext(work / "upload", work / "cache", env=dict(os.environ))
    context.work_dir.mkdir()
    provider, engine = spec.open(context), Engine()
    bare = engine.create(image)
    try:
        engine.start(bare)
        folder, ours, copied = TASK / "environment", float("inf"), float("inf")
        prepared = await provider.prepare(ImageRequest(context=folder, dockerfile=folder / "Dockerfile"))
        box = await provider.start(prepared, StartRequest(name="upload"))
        for number in range(runs):
            argv = ["docker", "cp", "-q", str(source), f"{bare}:/up{number}"]
            copied = min(copied, timed(lambda argv=argv: subprocess.run(argv, check=True, capture_output=True)))
            start = time.perf_counter()
            await box.upload(source, f"/up{number}")
            ours = min(ours, time.perf_counter() - start)
        counted = await box.exec(("sh", "-c", "find /up0 -type f | wc -l"))
        assert counted.stdout.strip() == b"2000", counted
        return ours, copied
    finally:
        engine.remove(bare)
        engine.close()
        await provider.close()


def measure(runs: int, peers: bool = False) -> list[Measure]:
    if not answers():
        return [Measure("skipped: no Docker engine answers", 0, "")]
    runs = min(runs, 5)
    with tempfile.TemporaryDirectory(prefix="benchflow-perf-") as temporary:
        work = Path(temporary)
        image = image_of(work)
        found = (
            one_rollout(work, image, runs) + eight(work, image, peers) + idle(work, image) + upload(work, image, runs)
        )
    return found


def one_rollout(work: Path, image: str, runs: int) -> list[Measure]:
    """In turns, so that a busy moment hits all of them alike."""
    bare_rollout(image)
    ours = dict.fromkeys(LIMITS, float("inf"))
    bare = float("inf")
    for _ in range(runs):
        bare = min(bare, timed(lambda: bare_rollout(image)))
        for isolation in LIMITS:
            ours[isolation] = min(ours[isolation], asyncio.run(ours_inside(work, isolation, 2)))
    return [
        Measure(
            f"one rollout, {isolation} / bare engine",
            ours[isolation] / bare,
            "x",
            limit,
            f"{ours[isolation] * 1e3:.0f} ms against {bare * 1e3:.0f} ms",
        )
        for isolation, limit in LIMITS.items()
    ]


def eight(work: Path, image: str, peers: bool) -> list[Measure]:
    bare, took = float("inf"), dict.fromkeys(LIMITS, float("inf"))
    for _ in range(3):
        bare = min(bare, bare_eight(image))
        for isolation in LIMITS:
            took[isolation] = min(took[isolation], ours_eight(work, isolation))
    found = [
        Measure(
            f"{EIGHT} at concurrency {CONCURRENCY}, {isolation} / bare",
            took[isolation] / bare,
            "x",
            limit,
            f"{took[isolation]:.1f} s against {bare:.1f} s, the whole command",
        )
        for isolation, limit in LIMITS.items()
    ]
    if peers:
        from benchmarks.perf._peers import PEERS

        for name, run, times in PEERS:
            theirs = run(work, TASK, EIGHT, CONCURRENCY)
            detail = f"{took['shared']:.1f} s against {theirs:.1f} s"
            found.append(
                Measure(
                    f"{EIGHT} at concurrency {CONCURRENCY}, ours / {name}",
                    took["shared"] / theirs,
                    "x",
                    1 / times,
                    detail,
                )
            )
    return found


def idle(work: Path, image: str) -> list[Measure]:
    bare = idle_bare(image)
    inside, own = asyncio.run(idle_ours(work))
    detail = f"{inside:.1f} MB in the box (bare: {bare:.1f}), {own:.2f} MB in our process"
    return [Measure(f"{IDLE} idle boxes, memory each beyond the container", inside - bare + own, "MB", 25.0, detail)]


def upload(work: Path, image: str, runs: int) -> list[Measure]:
    ours, copied = asyncio.run(uploads(work, image, many_files(work / "files"), max(runs, 4)))
    detail = f"{ours * 1e3:.0f} ms against {copied * 1e3:.0f} ms"
    return [Measure("upload of 20 MB in 2,000 files / docker cp", ours / copied, "x", 1.5, detail)]


if __name__ == "__main__":
    with_peers = "--peers" in sys.argv
    rest = [word for word in sys.argv[1:] if word != "--peers"]
    sys.exit(main({"docker": lambda runs: measure(runs, with_peers)}, rest))
