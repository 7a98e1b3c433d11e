"""What can be seen in a task's files: mistakes that would cost a run, and what gives the solution away."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from pathlib import Path

from benchflow_core.contracts import Finding, Task, VerifierSettings
from benchflow_core.errors import TaskError

__all__ = ["structural_findings"]

_PLACEHOLDER = "[REPLACE:"
_HEAD = 1 << 20
_FROM = re.compile(r"^\s*FROM\s+(?:--\S+\s+)*(\S+)(?:\s+AS\s+(\S+))?", re.IGNORECASE)
_COPY = re.compile(r"^\s*(?:COPY|ADD)\s+(?:--\S+\s+)*(?:\S+\s+)*?(\.\./\S*)", re.IGNORECASE)
_DIGESTED_JUNK = ("__pycache__", ".git", ".DS_Store", ".pytest_cache")


def structural_findings(task: Task) -> list[Finding]:
    """Looks at files only; every finding names one and says what to do."""
    findings = [*_prompts(task), *_solution(task), *_image(task), *_junk(task)]
    for settings in _verifications(task):
        findings += _verifier(settings, task)
    return list(dict.fromkeys(findings))


def _verifications(task: Task) -> list[VerifierSettings]:
    return [step.verifier for step in task.steps] if task.steps else [task.verifier]


def _prompts(task: Task) -> Iterator[Finding]:
    prompts = [(f"step '{step.name}'", step.instruction) for step in task.steps] or [("the task", task.instruction)]
    scenes = (task.drive or {}).get("scenes")
    for whose, text in prompts:
        if not text.strip() and not scenes:
            remedy = "Say what the agent is to do."
            yield Finding("error", f"{whose} has an empty instruction", task.path, remedy=remedy, code="no-instruction")
        if _PLACEHOLDER in text:
            what = f"the instruction of {whose} still has '{_PLACEHOLDER}'"
            yield Finding("error", what, task.path, remedy="Fill it in.", code="placeholder")


def _solution(task: Task) -> Iterator[Finding]:
    solutions = [step.solution for step in task.steps] if task.steps else [task.solution]
    if not all(solutions):
        what = "there is no reference solution: nobody can tell whether the task can be solved"
        yield Finding("warning", what, task.path, remedy="Write one; bench tasks init shows how.", code="no-solution")
    for script in dict.fromkeys(solution.dir / solution.script for solution in solutions if solution):
        yield from _script(script)


def _verifier(settings: VerifierSettings, task: Task) -> Iterator[Finding]:
    scripts = [folder / settings.script for folder in settings.tests if (folder / settings.script).is_file()]
    if scripts and settings.method == "test-script":
        yield from _script(scripts[-1])
    files = [file for folder in settings.tests for file, _ in _files(folder, links=True)]
    wanted = task.dialect.wants if settings.method == "test-script" else ()
    if files and wanted and not any(b"reward" in _head(file) for file in files):
        what = f"no file of the tests mentions a reward: something has to write {settings.logs_target}/{wanted[-1]}"
        yield Finding("info", what, settings.tests[-1], code="no-reward-seen")
    yield from _copies(files, task)


def _script(script: Path) -> Iterator[Finding]:
    head = _head(script)
    first = head.split(b"\n", 1)[0]
    if first.endswith(b"\r"):
        what = "the script has Windows line ends: its interpreter will not be found"
        yield Finding("error", what, script, 1, "Save it with Unix line ends.", "crlf")
    elif not first.startswith(b"#!") and script.suffix == ".sh":
        what = "the script does not name its interpreter and is left to whichever shell runs it"
        yield Finding("warning", what, script, 1, "Start it with #!/bin/sh or #!/bin/bash.", "no-shebang")
    at = head.find(_PLACEHOLDER.encode())
    if at >= 0:
        line = head.count(b"\n", 0, at) + 1
        yield Finding("error", f"the script still has '{_PLACEHOLDER}'", script, line, "Fill it in.", "placeholder")


def _image(task: Task) -> Iterator[Finding]:
    box = task.environment
    if box.image is None and box.dockerfile is None and box.compose is None:
        remedy = "Write environment/Dockerfile, or name an image."
        yield Finding(
            "error", "nothing says which file system the task runs on", task.path, remedy=remedy, code="no-image"
        )
    if box.dockerfile is None:
        return
    stages = {"scratch"}
    for number, line in enumerate(_head(box.dockerfile).decode("utf-8", "replace").split("\n"), 1):
        if found := _FROM.match(line):
            image, stage = found.groups()
            if image.lower() not in stages and "$" not in image and not _is_pinned(image):
                what = f"{image} is whatever it means on the day of the build"
                yield Finding("info", what, box.dockerfile, number, "Name a version, or a digest.", "unpinned-image")
            stages.add((stage or "").lower())
        elif found := _COPY.match(line):
            what = f"{found[1]} is outside of the build context"
            yield Finding("error", what, box.dockerfile, number, "Put the file into environment/.", "copy-outside")


def _is_pinned(image: str) -> bool:
    name = image.rsplit("/", 1)[-1]
    return "@" in name or (":" in name and not name.endswith(":latest"))


def _copies(files: list[Path], task: Task) -> Iterator[Finding]:
    """A test or the solution that also lies in the build context can be read by the agent."""
    if task.environment.context is None:
        return
    solutions = [found.dir for found in (task.solution, *(step.solution for step in task.steps)) if found]
    secret = [*files, *(file for folder in solutions for file, _ in _files(folder, links=True))]
    by_size: dict[int, list[Path]] = {}
    for file in secret:
        by_size.setdefault(file.stat().st_size, []).append(file)
    for path, size in _files(task.environment.context, links=False):
        for file in by_size.get(size, ()) if size else ():
            if _digest(path) == _digest(file):
                what = f"the same file as {file.relative_to(task.path)}: the agent may be able to read it"
                yield Finding("warning", what, path, remedy="Keep it out of the image.", code="leak")


def _files(folder: Path, *, links: bool) -> Iterator[tuple[Path, int]]:
    """Regular files below a folder and their sizes. Links of a build context are copied as links, so not followed.

    Loading the task has refused links that leave it or lead in a circle.
    """
    for parent, _, names in os.walk(folder, followlinks=links):
        for path in (Path(parent) / name for name in sorted(names)):
            if path.is_file() and (links or not path.is_symlink()):
                yield path, path.stat().st_size


def _junk(task: Task) -> Iterator[Finding]:
    for folder, folders, names in os.walk(task.path):
        for name in sorted({*folders, *names} & set(_DIGESTED_JUNK)):
            what = "counts in the task's digest, and changes from copy to copy"
            yield Finding("info", what, Path(folder) / name, remedy="Remove it.", code="junk")
        folders[:] = [name for name in folders if name not in _DIGESTED_JUNK]


def _head(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(_HEAD)
    except OSError as error:
        raise _unreadable(error, path) from error


def _digest(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").digest()
    except OSError as error:
        raise _unreadable(error, path) from error


def _unreadable(error: OSError, path: Path) -> TaskError:
    details = {"file": str(path), "code": "unreadable"}
    return TaskError(f"{path}: cannot be read: {error.strerror}.", remedy="Change its permissions.", details=details)
