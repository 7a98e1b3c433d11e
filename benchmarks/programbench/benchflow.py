"""From a clone of ProgramBench to Harbor task folders: `convert` makes one, `convert_all` many."""

from __future__ import annotations

import difflib
import gzip
import io
import json
import shutil
import tarfile
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tomli_w
import yaml

TEMPLATE = Path(__file__).parent / "template"
LAYOUTS = ("src/programbench/data/tasks", "programbench/data/tasks", "data/tasks")
"""Where the tasks lie: in a clone, in an unpacked wheel, in the package's own folder."""
OWN_TESTS = "testorg__"
"""ProgramBench's own test task: it has no published image and is converted only when named."""
IMAGE_TAG = "task_cleanroom_v6"
"""The image without the source; since ProgramBench 1.2 agents work in it and it is scored in it."""
LANGUAGES = {"rs": "rust", "hs": "haskell"}


class ConversionError(Exception):
    """What is wrong, where, and what to do: one line."""


@dataclass(frozen=True)
class Options:
    """Where else to look, and what to do with what is there."""

    image_tag: str = IMAGE_TAG
    blobs: Path | None = None
    """`<task>/tests/<branch>.tar.gz`, as ProgramBench publishes them; without it they are fetched when scoring."""
    sources: Path | None = None
    """`<task>/`: the original source, packed into the reference solution."""
    replace: bool = False


@dataclass(frozen=True)
class Instance:
    """One task as ProgramBench describes it."""

    id: str
    folder: Path
    repository: str
    commit: str
    language: str = ""
    difficulty: str = ""
    clean_hashes: tuple[str, ...] = ()
    branches: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    """Those that count: the names of their tests, and which of them are ignored."""

    @property
    def image(self) -> str:
        """Docker allows no double underscore in a name."""
        return f"programbench/{self.id.replace('__', '_1776_')}"


def tasks_folder(clone: Path) -> Path:
    """Where the clone keeps its tasks."""
    if not clone.is_dir():
        raise ConversionError(f"no folder {clone}: clone ProgramBench there, or name its place with --programbench-dir")
    for layout in LAYOUTS:
        if (clone / layout).is_dir():
            return clone / layout
    raise ConversionError(f"{clone} is not a clone of ProgramBench: it has no {LAYOUTS[0]}")


def instance_ids(clone: Path) -> list[str]:
    """Every task of the clone, by name."""
    folder = tasks_folder(clone)
    found = sorted(path.parent.name for path in folder.glob("*/task.yaml"))
    if not found:
        raise ConversionError(f"{folder} holds no task: no <task>/task.yaml in it")
    return found


def load(folder: Path) -> Instance:
    """Read `task.yaml` and `tests.json` of one task."""
    about = _read(folder / "task.yaml", yaml.safe_load)
    tests = _read(folder / "tests.json", json.loads)
    for key in ("repository", "commit"):
        if not isinstance(about.get(key), str):
            raise ConversionError(f"{folder / 'task.yaml'}: no {key!r}, and a task needs one")
    hashes = tuple(about.get("eval_clean_hashes") or ())
    if not all(isinstance(digest, str) for digest in hashes):
        raise ConversionError(
            f"{folder / 'task.yaml'}: 'eval_clean_hashes' holds a number; put hashes of digits in quotes"
        )
    branches = {
        name: {
            "tests": list(branch.get("tests") or ()),
            "ignored": [test["name"] for test in branch.get("ignored_tests") or ()],
        }
        for name, branch in (tests.get("branches") or {}).items()
        if not branch.get("ignored")
    }
    if not any(set(branch["tests"]) - set(branch["ignored"]) for branch in branches.values()):
        raise ConversionError(f"{folder / 'tests.json'}: no test that counts, so nothing could be scored")
    return Instance(
        id=folder.name,
        folder=folder,
        repository=about["repository"],
        commit=about["commit"],
        language=about.get("language") or "",
        difficulty=about.get("difficulty") or "",
        clean_hashes=hashes,
        branches=branches,
    )


def convert(instance: Instance, output: Path, options: Options | None = None) -> bool:
    """Write one task below `output`; False if it was there and is kept."""
    options = options or Options()
    target = output / instance.id
    if target.exists() and not options.replace:
        return False
    try:
        output.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".converting-", dir=output) as scratch:
            made = Path(scratch) / instance.id
            _write(instance, made, options)
            if target.exists():
                shutil.rmtree(target)
            made.rename(target)
    except OSError as error:
        raise ConversionError(f"cannot write below {output}: {error.strerror or error}") from error
    return True


def convert_all(
    clone: Path, output: Path, ids: Iterable[str] = (), options: Options | None = None
) -> tuple[list[str], list[str]]:
    """Convert the tasks named, or all; which were written and which were there and are kept."""
    known = instance_ids(clone)
    chosen = list(dict.fromkeys(ids))
    for name in chosen:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1, 0.4)
            hint = f"; did you mean {near[0]!r}?" if near else f"; there are {len(known)}"
            raise ConversionError(f"no task {name!r} in {clone}{hint}")
    written: list[str] = []
    kept: list[str] = []
    for name in chosen or [name for name in known if not name.startswith(OWN_TESTS)]:
        new = convert(load(tasks_folder(clone) / name), output, options)
        (written if new else kept).append(name)
    return written, kept


def _read(file: Path, parse: Any) -> dict[str, Any]:
    try:
        data = parse(file.read_text("utf-8"))
    except OSError as error:
        raise ConversionError(f"{file}: {error.strerror}") from error
    except (ValueError, yaml.YAMLError) as error:
        raise ConversionError(f"{file}: {' '.join(str(error).split())}") from error
    if not isinstance(data, dict):
        raise ConversionError(f"{file}: expected a table")
    return data


def _write(instance: Instance, folder: Path, options: Options) -> None:
    tests, solution = folder / "tests", folder / "solution"
    for made in (tests, solution):
        made.mkdir(parents=True)
    shutil.copy(TEMPLATE / "instruction.md", folder)
    shutil.copy(TEMPLATE / "score.py", tests)
    embedded = _embed_tests(instance, tests, options)
    _script(tests / "test.sh", (TEMPLATE / "test.sh").read_text())
    spec = {
        "id": instance.id,
        "clean_hashes": instance.clean_hashes,
        "branches": instance.branches,
        "embedded": embedded,
    }
    (tests / "spec.json").write_text(json.dumps(spec, indent=1) + "\n")
    _solution(instance, solution, options)
    box: dict[str, Any] = {"workdir": "/workspace"}
    (folder / "environment").mkdir()
    if (instance.folder / "Dockerfile").is_file():
        shutil.copy(instance.folder / "Dockerfile", folder / "environment")
    else:
        box["docker_image"] = f"{instance.image}:{options.image_tag}"
        (folder / "environment/Dockerfile").write_text(f"FROM {box['docker_image']}\nWORKDIR /workspace\n")
    counted = sum(len(set(branch["tests"]) - set(branch["ignored"])) for branch in instance.branches.values())
    config = {
        "schema_version": "1.4",
        "task": {
            "name": f"programbench/{instance.id}",
            "description": "Rebuild a program from its behaviour and its documentation.",
            "keywords": ["programbench", *filter(None, [LANGUAGES.get(instance.language, instance.language)])],
        },
        "metadata": {
            "difficulty": instance.difficulty or "unknown",
            "repository": instance.repository,
            "commit": instance.commit,
            "language": LANGUAGES.get(instance.language, instance.language),
            "tests": counted,
        },
        # The agent is cut off; so is the verifier, unless it has to fetch its tests.
        "agent": {"timeout_sec": 21600, **({} if embedded else {"network_mode": "no-network"})},
        "verifier": {"timeout_sec": 14400},
        "environment": {**box, "network_mode": "no-network" if embedded else "public"},
        "solution": {"timeout_sec": 3600},
    }
    (folder / "task.toml").write_text(tomli_w.dumps(config))


def _embed_tests(instance: Instance, tests: Path, options: Options) -> bool:
    """Put the hidden tests into the task where they are at hand; whether they were."""
    inside = instance.folder / "tests"
    if options.blobs is None and not inside.is_dir():
        return False
    (tests / "blobs").mkdir()
    for branch in instance.branches:
        packed = (options.blobs or inside) / instance.id / "tests" / f"{branch}.tar.gz"
        target = tests / "blobs" / packed.name
        if packed.is_file():
            shutil.copyfile(packed, target)
        elif (inside / branch).is_dir():
            pack(inside / branch, target)
        else:
            raise ConversionError(f"no {packed}: get it from ProgramBench's test archives, or leave --blobs out")
    return True


def _solution(instance: Instance, folder: Path, options: Options) -> None:
    """The original source at its commit, and how to build it."""
    if options.sources is not None:
        source = options.sources / instance.id
        if not source.is_dir():
            raise ConversionError(f"no {source}: check out {instance.repository} at {instance.commit} there")
        pack(source, folder / "source.tar.gz")
    build = instance.folder / "build.sh"
    _script(folder / "compile.sh", (build if build.is_file() else TEMPLATE / "compile.sh").read_text())
    text = (TEMPLATE / "solve.sh").read_text()
    for key, value in {"@REPOSITORY@": instance.repository, "@COMMIT@": instance.commit}.items():
        text = text.replace(key, value)
    _script(folder / "solve.sh", text)


def pack(folder: Path, target: Path) -> None:
    """A `.tar.gz` of a folder's content that is the same every time."""

    def plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
        entry.mtime = entry.uid = entry.gid = 0
        entry.uname = entry.gname = ""
        return entry

    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as tar:
        for path in sorted(folder.rglob("*")):
            tar.add(path, path.relative_to(folder).as_posix(), recursive=False, filter=plain)
    target.write_bytes(gzip.compress(raw.getvalue(), mtime=0))


def _script(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)
