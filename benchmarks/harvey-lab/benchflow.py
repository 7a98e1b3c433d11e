"""Makes Harbor task folders of the tasks of a harveyai/harvey-labs clone.

python benchmarks/harvey-lab/benchflow.py --harvey-root CLONE --output-dir .cache/harvey-lab-tasks
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final

import tomli_w

WORKSPACE: Final = "/workspace"
"""Where the original puts a matter: `documents` to read and `output` to fill below it."""
_TOOLS: Final = """\
RUN apt-get update && apt-get install -y --no-install-recommends pandoc && rm -rf /var/lib/apt/lists/*
RUN pip install --no-cache-dir openpyxl==3.1.5 pdfplumber==0.11.7 python-docx==1.2.0 python-pptx==1.0.2
"""


class SourceError(Exception):
    """Something in the clone is not as it should be: one line."""


@dataclass(frozen=True)
class Options:
    """What the source leaves open."""

    judge: str = "anthropic/claude-sonnet-4-6"
    scoring: str = "all-or-nothing"
    """The original's: a task counts only when every criterion is met."""
    image: str = "python:3.12-slim"
    tools: bool = True
    """With what agents need to read and write office files."""


STANDARD: Final = Options()


@dataclass(frozen=True)
class Criterion:
    id: str
    title: str
    match_criteria: str
    deliverables: tuple[str, ...]


@dataclass(frozen=True)
class SourceTask:
    """One `task.json`, and the documents beside it."""

    id: str
    folder: Path
    title: str
    instructions: str
    work_type: str
    tags: tuple[str, ...]
    criteria: tuple[Criterion, ...]
    redlines: int
    """Criteria with options of their own for the original's judge, which we do not have."""

    @property
    def name(self) -> str:
        return self.id.replace("/", "-")

    @property
    def area(self) -> str:
        return self.id.split("/")[0]

    @property
    def deliverables(self) -> list[str]:
        return list(dict.fromkeys(name for one in self.criteria for name in one.deliverables))

    def documents(self) -> list[Path]:
        """Relative to `documents/`, in order."""
        root = self.folder / "documents"
        found = sorted(root.rglob("*"))
        if links := [path for path in found if path.is_symlink()]:
            raise SourceError(f"{links[0]} is a link; documents have to be files.")
        return [path.relative_to(root) for path in found if path.is_file()]


def find_tasks(root: Path, include: Sequence[str] = ()) -> list[SourceTask]:
    """Every task of a clone, or those whose id or flat name matches one of the patterns."""
    folder = root / "tasks"
    files = sorted(folder.rglob("task.json"))
    if not files:
        raise SourceError(f"{root} has no tasks/**/task.json: is it a clone of harveyai/harvey-labs?")
    tasks = [_read(file, file.parent.relative_to(folder).as_posix()) for file in files]
    names: dict[str, SourceTask] = {}
    for task in tasks:
        if task.name in names:
            raise SourceError(f"{names[task.name].id} and {task.id} would both be called {task.name}.")
        names[task.name] = task
    return [t for t in tasks if not include or any(fnmatchcase(t.id, p) or fnmatchcase(t.name, p) for p in include)]


def convert(task: SourceTask, target: Path, options: Options = STANDARD) -> Path:
    """The task as a folder below `target`; one that is there is replaced."""
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".new-", dir=target) as scratch:
        new = Path(scratch) / task.name
        _write(task, new, options)
        if (folder := target / task.name).exists():
            shutil.rmtree(folder)
        new.rename(folder)
    return folder


def convert_all(root: Path, target: Path, options: Options = STANDARD, include: Sequence[str] = ()) -> list[Path]:
    return [convert(task, target, options) for task in find_tasks(root, include)]


def rubric(task: SourceTask, options: Options) -> dict[str, Any]:
    """For the verifier `llm-judge`. The original counts every criterion alike, whatever an old `weight` says."""
    criteria = [
        {
            "id": one.id,
            "title": one.title,
            "match_criteria": one.match_criteria,
            "deliverables": list(one.deliverables),
        }
        for one in task.criteria
    ]
    return {"title": task.title, "scoring": options.scoring, "other_names": True, "criteria": criteria}


def _write(task: SourceTask, folder: Path, options: Options) -> None:
    documents = folder / "environment/documents"
    documents.mkdir(parents=True)
    for name in task.documents():
        (documents / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(task.folder / "documents" / name, documents / name)
    tools = _TOOLS if options.tools else ""
    copied = "COPY documents documents\n" if task.documents() else ""
    box = f"FROM {options.image}\n{tools}WORKDIR {WORKSPACE}\n{copied}RUN mkdir -p documents output\n"
    (folder / "environment/Dockerfile").write_text(box, "utf-8")
    (folder / "instruction.md").write_text(_instruction(task), "utf-8")
    (folder / "task.toml").write_text(tomli_w.dumps(_config(task, options)), "utf-8")
    (folder / "tests").mkdir()
    text = json.dumps(rubric(task, options), indent=2, ensure_ascii=False)
    (folder / "tests/rubric.json").write_text(f"{text}\n", "utf-8")


def _instruction(task: SourceTask) -> str:
    names = "".join(f"- `{WORKSPACE}/output/{name}`\n" for name in task.deliverables)
    wanted = f"Hand in, under exactly these names:\n\n{names}" if names else f"Hand in files in `{WORKSPACE}/output`.\n"
    return f"{task.instructions.rstrip()}\n\n---\n\nThe matter's documents are in `{WORKSPACE}/documents`. {wanted}"


def _config(task: SourceTask, options: Options) -> dict[str, Any]:
    return {
        "schema_version": "1.4",
        "task": {"name": f"harvey-lab/{task.name}", "description": task.title, "keywords": list(task.tags)},
        "metadata": {
            "category": task.area,
            "work_type": task.work_type,
            "source": "harveyai/harvey-labs",
            "source_task": task.id,
            # Nothing but files is asked of the box: it also runs where no container engine is.
            "benchflow": {"allow_substitute": not options.tools},
        },
        "agent": {"timeout_sec": 3600.0},
        "verifier": {
            "type": "llm-judge",
            "timeout_sec": 3600.0,
            "judge": {
                "model": options.judge,
                "rubric_path": "tests/rubric.json",
                "input_dir": f"{WORKSPACE}/output",
            },
        },
        "environment": {"build_timeout_sec": 1200.0, "cpus": 1, "memory_mb": 2048},
    }


def _read(file: Path, name: str) -> SourceTask:
    try:
        data = json.loads(file.read_text("utf-8"))
        names = {key: str(value) for key, value in dict(data.get("deliverables") or {}).items()}
        criteria = [_criterion(one, number, names) for number, one in enumerate(data["criteria"], 1)]
        if not criteria:
            raise ValueError("it has no criteria")
        if len({one.id for one in criteria}) < len(criteria):  # then they go by their place
            criteria = [replace(one, id=f"C-{number:03}") for number, one in enumerate(criteria, 1)]
        return SourceTask(
            id=name,
            folder=file.parent,
            title=_text(data, "title"),
            instructions=_text(data, "instructions"),
            work_type=str(data.get("work_type") or ""),
            tags=tuple(map(str, data.get("tags") or ())),
            criteria=tuple(criteria),
            redlines=sum(bool(one.get("evaluation_options")) for one in data["criteria"]),
        )
    except KeyError as error:
        raise SourceError(f"{file} has no {error.args[0]}.") from error
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise SourceError(f"{file} is not a task: {error}.") from error


def _criterion(data: dict[str, Any], number: int, names: dict[str, str]) -> Criterion:
    wanted = tuple(names.get(str(name), str(name)) for name in data.get("deliverables") or ())
    return Criterion(
        str(data.get("id") or f"C-{number:03}"), _text(data, "title"), _text(data, "match_criteria"), wanted
    )


def _text(data: dict[str, Any], key: str) -> str:
    value = data[key]
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"{key} is not a text")
    return value


def main(argv: Sequence[str] | None = None) -> int:
    own = STANDARD
    parser = argparse.ArgumentParser(description="Harvey LAB's tasks as Harbor folders.")
    parser.add_argument("--harvey-root", type=Path, required=True, help="a clone of harveyai/harvey-labs")
    parser.add_argument("--output-dir", type=Path, default=Path(".cache/harvey-lab-tasks"))
    parser.add_argument("--include", action="append", default=[], metavar="GLOB", help="only these, by id or flat name")
    parser.add_argument("--judge", default=own.judge, metavar="MODEL", help="default: %(default)s")
    parser.add_argument("--scoring", choices=("all-or-nothing", "proportional"), default=own.scoring)
    parser.add_argument("--image", default=own.image, help="what the box stands on; default: %(default)s")
    parser.add_argument("--bare", action="store_true", help="no tools for office files: runs without Docker too")
    given = parser.parse_args(argv)
    options = Options(given.judge, given.scoring, given.image, tools=not given.bare)
    try:
        tasks = find_tasks(given.harvey_root, given.include)
        if not tasks:
            raise SourceError(f"no task matches {', '.join(given.include)}.")
        for task in tasks:
            convert(task, given.output_dir, options)
    except (SourceError, OSError) as error:
        print(f"benchflow.py: {error}", file=sys.stderr)
        return 1
    criteria = sum(len(task.criteria) for task in tasks)
    print(f"{len(tasks)} tasks with {criteria} criteria in {given.output_dir}")
    if redlines := sum(task.redlines for task in tasks):
        print(f"{redlines} criteria have options for the original's judge (redlines): judged with changes accepted")
    return 0


if __name__ == "__main__":
    sys.exit(main())
