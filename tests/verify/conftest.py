"""A real sandbox, a real task, a scripted agent (shell commands as root) and the real script verifier."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import secrets
import shutil
import tomllib
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from benchflow_testing_kit.host import eventually

from benchflow_core.contracts import (
    ImageRef,
    ImageRequest,
    NetworkPolicy,
    ReferenceRun,
    Sandbox,
    SandboxContext,
    SandboxProvider,
    SandboxSpec,
    StartRequest,
    Task,
    private_folder,
)
from benchflow_core.errors import InfrastructureError
from benchflow_core.plugins import registry
from benchflow_core.task import load_task
from benchflow_core.verify import Verdict, VerifyRequest, verify

SANDBOX = os.environ.get("BENCHFLOW_TEST_SANDBOX", "local")
BASE = os.environ.get("BENCHFLOW_TEST_BASE")
"""An image with Python, git and curl, for sandboxes that take FROM at its word."""
TELLING = frozenset(
    """sitecustomize standard-library-changed pth-with-an-import preload link-earlier-in-path conftest image-library-changed
    loop-rewriting-the-reward reward-text-is-a-pipe name-service-library login-profile server-left-running
    image-checker-with-its-old-size-and-time folder-of-commands-open-to-all function-in-a-login-profile path-in-start-up-files
    program-that-our-preparation-calls test_cancelling_leaves_nothing test_verifications_leave_no_snapshot test_policies""".split()
)
"""With BENCHFLOW_TEST_SUBSET=telling only these run: one or two of each kind, for a sandbox where all would take long."""
CHECK_ANSWER = """#!/bin/bash
if [ "$(cat /app/answer.txt 2>/dev/null)" = 42 ]; then echo 1 > /logs/verifier/reward.txt
else echo 0 > /logs/verifier/reward.txt; fi
"""
CASES = Path(__file__).parent / "cases"
"""Small tasks as data: cheats, and honest work. `agent` is a script, `tests` are files by name."""
NO_IMAGE_HAS = frozenset("make file pkg-config jq ssh tclsh node npx javac gdb vim setcap".split())
"""Of ours; the embedded sandbox shows those of the host."""
PYTEST_PARTS = ("pytest", "_pytest", "pluggy", "iniconfig", "packaging", "pygments")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """On another sandbox than the embedded one these tests need its engine, and may be told to be few."""
    mine = [item for item in items if item.path.parent == Path(__file__).parent]
    if SANDBOX != "local":
        for item in mine:
            item.add_marker(pytest.mark.docker)
    if os.environ.get("BENCHFLOW_TEST_SUBSET") == "telling":
        few = [i for i in items if i not in mine or {i.name.partition("[")[0], *_words(i.name)} & TELLING]
        config.hook.pytest_deselected(items=[item for item in items if item not in few])
        items[:] = few


def _words(name: str) -> set[str]:
    """What stands in the brackets."""
    return {name.partition("[")[2].removesuffix("]")}


async def _no_model(purpose: str) -> Any:
    raise AssertionError(f"no model was expected for {purpose}")


@dataclass
class Arena:
    """Where agents play and are verified."""

    provider: SandboxProvider
    image: ImageRef
    capabilities: frozenset[str]
    folder: Path
    spec: SandboxSpec
    labels: dict[str, str]
    events: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)
    count: int = 0

    def need(self, names: str) -> None:
        """Skip where a program is missing, or where the box has one user only."""
        for name in names.split():
            here = name in self.capabilities if name == "users" else shutil.which(name) is not None
            if not here or (name in NO_IMAGE_HAS and SANDBOX != "local"):
                pytest.skip(f"needs {name}")

    async def leases(self, kind: str) -> list[str]:
        """What exists of ours at the sandbox."""
        mine = self.labels.items()
        return [
            lease.id async for lease in self.spec.list_leases() if lease.kind == kind and mine <= lease.labels.items()
        ]

    async def images_become(self, wanted: list[str]) -> bool:
        """A snapshot that is no longer needed may take a moment to go."""

        async def so() -> bool:
            return set(await self.leases("image")) <= set(wanted)

        return await eventually(so)

    def task(self, tests: Mapping[str, str], *, instruction: str = "Do it.", options: str = "") -> Task:
        self.count += 1
        root = self.folder / f"task{self.count}"
        (root / "environment").mkdir(parents=True)
        (root / "environment" / "Dockerfile").write_text("FROM debian:12\nWORKDIR /app\n")
        (root / "task.toml").write_text(
            f'version = "1.0"\n[verifier]\ntimeout_sec = 60.0\n[metadata.benchflow]\n{options}\n'
        )
        (root / "instruction.md").write_text(instruction)
        for name, text in tests.items():
            path = root / "tests" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return load_task(root)

    @asynccontextmanager
    async def agent(self, script: str = "", *, image: ImageRef | None = None) -> AsyncIterator[Sandbox]:
        """A box in which an agent has done its work, as root."""
        box = await self.provider.start(image or self.image, StartRequest(name="agent", workdir="/app"))
        try:
            await box.exec(("/bin/mkdir", "-p", "/logs/verifier", "/logs/agent"), cwd="/")
            done = await box.exec(("/bin/bash", "-c", f"set -e\n{script}"), cwd="/app", timeout=60)
            assert done.exit_code == 0, (done.stdout + done.stderr).decode(errors="replace")
            yield box
        finally:
            await box.stop()

    def request(self, task: Task, box: Sandbox, policy: str | None = None, **more: Any) -> VerifyRequest:
        request = VerifyRequest(
            task=task,
            step=None,
            settings=task.verifier,
            verifier=registry().get("verifier", "script"),
            provider=self.provider,
            image=self.image,
            sandbox=box,
            capabilities=self.capabilities,
            policy=policy,
            start=StartRequest(name="verifier", workdir="/app", network=NetworkPolicy("none")),
            env={},
            output_dir=self.folder / f"out{self.count}-{policy}",
            emit=lambda kind, data: self.events.append((kind, data)),
            model=_no_model,
            workdir="/app",
        )
        return replace(request, **more)

    async def play(
        self,
        agent: str,
        test: str | Mapping[str, str] = CHECK_ANSWER,
        policy: str | None = None,
        *,
        instruction: str = "Do it.",
        options: str = "",
        image: ImageRef | None = None,
        solution: str | None = None,
        **more: Any,
    ) -> Verdict:
        """An agent's work, and the verdict on it. `solution`: what the task's reference solution does."""
        task = self.task(_files(test), instruction=instruction, options=options)
        if solution is not None:
            more["reference"] = partial(self.reference, task, solution)
        async with self.agent(agent, image=image) as box:
            return await verify(self.request(task, box, policy, image=image or self.image, **more))

    async def reference(self, task: Task, solution: str) -> ReferenceRun:
        """What the solution changes in a box of its own, and what it earns as left."""
        async with self.agent(solution) as box:
            request = self.request(task, box, reference_run=True, output_dir=self.folder / f"reference{self.count}")
            verdict = await verify(request)
        return ReferenceRun(verdict.changes, verdict.rewards, "sha256:0")

    async def naive(self, agent: str, test: str | Mapping[str, str] = CHECK_ANSWER) -> float | None:
        """What a runner pays that runs the tests where the agent worked and reads what it finds: the cheat must work."""
        task = self.task(_files(test))
        async with self.agent(agent) as box:
            await box.upload(task.verifier.tests[0], "/tests")
            await box.exec(("/bin/sh", "-c", "chmod +x /tests/test.sh; exec /tests/test.sh"), cwd="/app", timeout=60)
            for _ in range(100):  # a cheat that works in the background may take its time on a busy machine
                paid = await self._found(box)
                if paid == 1:
                    break
                await asyncio.sleep(0.05)
        return paid

    async def _found(self, box: Sandbox) -> float | None:
        """The log folder itself may be a link: a naive runner follows it."""
        for folder in ("/logs/verifier", "/app/mine", "/app/mine/verifier"):
            for name in ("reward.json", "reward.txt"):
                if text := await _text(box, f"{folder}/{name}"):
                    with suppress(ValueError):
                        return float(text.strip().removeprefix('{"reward":').removesuffix("}"))
        return None


async def _text(box: Sandbox, path: str) -> str:
    with private_folder() as folder:
        with suppress(FileNotFoundError, NotADirectoryError, InfrastructureError):
            await box.download(path, folder / "file")
        file = folder / "file"
        return file.read_text(errors="replace") if file.is_file() and not file.is_symlink() else ""


def _files(test: str | Mapping[str, str]) -> dict[str, str]:
    return {"test.sh": test} if isinstance(test, str) else dict(test)


@dataclass(frozen=True)
class Case:
    """One of `cases/`."""

    name: str
    agent: str
    tests: Mapping[str, str]
    instructions: tuple[str, ...]
    """The same task in several wordings: another language, a symptom alone, a mention of the tool that is abused."""
    options: str = ""
    needs: str = ""
    boxes: tuple[str, ...] = ()
    """The sandboxes where it works on anybody; the others do not let it come so far."""
    naive: bool = True
    """A cheat that works on a naive runner. Not where uploading already undoes it."""
    same_as_honest: str = ""
    """A cheat that is the same as honest work, and paid: what the tests can do about it."""
    second: str = ""
    """Another right solution than the reference's, which is `agent`."""
    second_is_contested: bool = False
    """No evidence tells it from a cheat: it is scored clean, and the culprits are named."""


def cases(kind: str) -> list[Case]:
    """Every case of a folder, by name."""
    found = [(path.stem, tomllib.loads(path.read_text())) for path in sorted((CASES / kind).glob("*.toml"))]
    return [Case(name, **{k: tuple(v) if isinstance(v, list) else v for k, v in data.items()}) for name, data in found]


def score(verdict: Verdict) -> float | None:
    """The reward, or nothing."""
    return verdict.rewards["reward"] if verdict.rewards else None


@pytest.fixture(scope="session")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A build context with a pytest for the image: the one that runs these tests."""
    folder = tmp_path_factory.mktemp("context")
    site = folder / "site"
    site.mkdir()
    source = Path(importlib.util.find_spec("pytest").origin).parent.parent  # type: ignore[union-attr,arg-type]
    for name in PYTEST_PARTS:
        shutil.copytree(source / name, site / name, ignore=shutil.ignore_patterns("__pycache__"))
        for metadata in source.glob(f"{name}-*.dist-info"):
            shutil.copytree(metadata, site / metadata.name)
    (site / "py.py").write_text((source / "py.py").read_text())
    (folder / "Dockerfile").write_text(
        "FROM debian:12\nWORKDIR /app\nCOPY site /usr/local/lib/python3.11/dist-packages/\n"
        "COPY files /\nRUN python3 -m compileall -q /usr/local/lib/python3.11/dist-packages\nRUN git init -q /app/repo && git -C /app/repo -c user.name=x -c user.email=x commit -q --allow-empty -m x\n"
    )
    files = folder / "files"
    for path, text in {
        "app/image_module.py": "VALUE = 1\n",
        "app/pyproject.toml": '[project]\nname = "demo"\nversion = "1"\n[tool.pytest.ini_options]\npythonpath = ["src"]\n',
        "app/src/layout.py": "HERE = True\n",
        "usr/local/bin/checker": "#!/bin/sh\ngrep -q 42 /app/answer.txt\n",
        "usr/share/demo/data.txt": "data\n",
        "usr/local/lib/python3.11/dist-packages/helper_lib.py": "def check():\n    return open('/app/answer.txt').read().strip() == '42'\n",
        "etc/demo.conf": "setting = old\n",
        "root/.local/bin/homely": "#!/bin/sh\necho homely\n",
    }.items():
        (files / path).parent.mkdir(parents=True, exist_ok=True)
        (files / path).write_text(text)
        if "/bin/" in path:
            (files / path).chmod(0o755)
    return folder


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def arena(workshop: Path, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Arena]:
    spec = registry().get("sandbox", SANDBOX).spec
    available = spec.available()
    if not available.ok:
        pytest.skip(available.reason)
    declared = spec.capabilities
    capabilities = frozenset(declared() if callable(declared) else declared)
    folder = tmp_path_factory.mktemp("arena")
    for name in ("work", "cache"):
        (folder / name).mkdir()
    labels = {"arena": secrets.token_hex(4)}
    provider = spec.open(SandboxContext(folder / "work", folder / "cache", labels=labels, env=dict(os.environ)))
    try:
        request = ImageRequest(
            context=workshop, dockerfile=workshop / "Dockerfile", allow_substitute=True, base_override=BASE
        )
        yield Arena(provider, await provider.prepare(request), capabilities, folder, spec, labels)
    finally:
        await provider.close()
