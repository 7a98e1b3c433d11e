"""From a skill's `evals/` to a task folder per case, kept by digest: the same cases are the same tasks."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from benchflow_core.contracts import Fetched, SourceRequest
from benchflow_core.errors import ConfigurationError
from benchflow_feature_standard.cases.evals import read_evals, to_json

__all__ = ["fetch_cases"]

_FILE: Final = "evals.json"
_DOCKERFILE: Final = "FROM python:3.12-slim\nWORKDIR /app\n"
_REQUIREMENTS: Final = (
    "COPY requirements.txt /tmp/requirements.txt\nRUN pip install --no-cache-dir -r /tmp/requirements.txt\n"
)


def fetch_cases(request: SourceRequest, place: str) -> Fetched:
    """The skill as it is now; with a ref, as it was when it had this digest."""
    skill = Path(place).expanduser().resolve()
    root, digest = request.cache_dir / (request.ref or "none"), request.ref
    if digest is None or not root.is_dir():
        digest = _digest(skill)
        root = request.cache_dir / digest
        if request.ref not in (None, digest):
            raise ConfigurationError(f"the cases of {skill} are not those of {request.ref} any more.")
        if not root.is_dir():
            _write(skill, root)
    stamp = {"type": "skill-evals", "uri": request.uri, "requested_ref": request.ref, "path": request.path}
    return Fetched(root, {**stamp, "resolved_sha": digest})


def _digest(skill: Path) -> str:
    """Of the cases and what their box is made of, and not of the skill: both arms have the same tasks."""
    if not (skill / "evals" / _FILE).is_file():
        raise ConfigurationError(f"{skill} has no evals/{_FILE}.", remedy="Name tasks to run with -t.")
    sum_ = hashlib.sha256()
    for file in _files(skill / "evals"):
        name = file.relative_to(skill / "evals").as_posix()
        sum_.update(repr((name, os.access(file, os.X_OK), hashlib.sha256(file.read_bytes()).hexdigest())).encode())
    return sum_.hexdigest()


def _write(skill: Path, root: Path) -> None:
    evals = read_evals(skill / "evals" / _FILE)
    root.parent.mkdir(parents=True, exist_ok=True)
    staged = Path(tempfile.mkdtemp(prefix=".new-", dir=root.parent))
    try:
        for case in evals.named():
            folder = staged / case.id
            (folder / "environment").mkdir(parents=True)
            (folder / "case.json").write_text(to_json(case, evals.defaults, evals.skill_name or skill.name), "utf-8")
            _write_box(skill / "evals", folder / "environment")
        staged.chmod(0o755)
        staged.rename(root)
    except OSError:
        if not root.is_dir():  # else another process made the same just now
            raise
    finally:
        shutil.rmtree(staged, ignore_errors=True)


def _write_box(evals: Path, target: Path) -> None:
    """Everything but the cases themselves, which an agent must not find."""
    for file in _files(evals):
        name = file.relative_to(evals)
        if name.as_posix() != _FILE:
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(file, target / name)
    if not (target / "Dockerfile").exists():
        more = _REQUIREMENTS if (target / "requirements.txt").exists() else ""
        (target / "Dockerfile").write_text(_DOCKERFILE + more)


def _files(root: Path) -> Iterator[Path]:
    """Regular files; a link could lead anywhere."""
    for path in sorted(root.rglob("*")):
        if path.is_file() and not path.is_symlink() and "__pycache__" not in path.parts:
            yield path
