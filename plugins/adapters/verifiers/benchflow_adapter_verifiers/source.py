"""From an environment's address to a folder with a task folder for each of its tasks, kept by digest."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl

from benchflow_adapter_verifiers.environment import GENERATIONS, WORKER, VerifiersEnvironment
from benchflow_adapter_verifiers.plugin import FILE
from benchflow_core.contracts import Fetched, SourceRequest
from benchflow_core.errors import ConfigurationError

__all__ = ["KEPT", "environment_of", "fetch_tasks", "module_folder"]

KEPT: Final = ".environment"
"""Beside the tasks: the module or package they come from, as it was."""
_OURS: Final = ("limit", "verifiers", "allow_env")
_DESCRIBE: Final = 600.0
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")


def fetch_tasks(request: SourceRequest, address: str) -> Fetched:
    """The tasks as the environment lists them now; with a digest as the ref, those that had it."""
    ref = request.ref
    if ref and _DIGEST.fullmatch(ref):
        root, digest = request.cache_dir / ref, ref
        if not root.is_dir():
            digest = _make(request, address, None)
            if digest != ref:
                raise ConfigurationError(f"the tasks of {address} are not those of {ref[:12]} any more.")
    else:
        digest = _make(request, address, ref)
        root = request.cache_dir / digest
    stamp = {"type": "verifiers", "uri": request.uri, "requested_ref": ref, "path": request.path}
    return Fetched(_inside(root, request.path), {**stamp, "resolved_sha": digest})


def environment_of(spec: Mapping[str, Any], root: Path) -> VerifiersEnvironment:
    """The Python environment that plays tasks of this description."""
    package = spec["package"]
    if package and spec["local"]:
        package = str((root / KEPT / package).resolve())
    return VerifiersEnvironment(spec["generation"], package, spec["digest"])


def module_folder(spec: Mapping[str, Any], root: Path) -> Path | None:
    return (root / KEPT).resolve() if spec["local"] and not spec["package"] else None


def _make(request: SourceRequest, address: str, version: str | None) -> str:
    name, _, query = address.partition("?")
    spec = {"id": "", "package": None, "local": False, "digest": "", **_options(address, query)}
    generations = [spec.pop("verifiers")] if spec["verifiers"] else [*GENERATIONS]
    spec.pop("verifiers", None)
    request.cache_dir.mkdir(parents=True, exist_ok=True)
    staged = Path(tempfile.mkdtemp(prefix=".new-", dir=request.cache_dir))
    try:
        _keep(name, version, spec, staged)
        said = _describe(address, spec, generations, staged)
        digest = hashlib.sha256(json.dumps([spec, said], sort_keys=True).encode()).hexdigest()
        _write(staged, spec, said)
        staged.chmod(0o755)
        if not (request.cache_dir / digest).is_dir():
            try:
                staged.rename(request.cache_dir / digest)
            except OSError:
                if not (request.cache_dir / digest).is_dir():  # else another process made the same just now
                    raise
        return digest
    finally:
        shutil.rmtree(staged, ignore_errors=True)


def _options(address: str, query: str) -> dict[str, Any]:
    """`limit`, `verifiers` and `allow_env` are ours; everything else goes to the environment, as JSON where it is."""
    given: dict[str, Any] = {"limit": None, "verifiers": None, "allow_env": []}
    args: dict[str, Any] = {}
    for key, text in parse_qsl(query, keep_blank_values=True):
        if key not in _OURS:
            try:
                args[key] = json.loads(text)
            except ValueError:
                args[key] = text
        elif key == "limit":
            if not (text.isdecimal() and int(text) > 0):
                raise ConfigurationError(f"{address}: limit={text} is no number of tasks.")
            given["limit"] = int(text)
        elif key == "allow_env":
            given["allow_env"] += [one for one in text.split(",") if one]
        elif text not in GENERATIONS:
            raise ConfigurationError(f"{address}: verifiers={text} is none of {', '.join(GENERATIONS)}.")
        else:
            given["verifiers"] = text
    return {**given, "args": args}


def _keep(name: str, version: str | None, spec: dict[str, Any], staged: Path) -> None:
    """Find what the name means, and keep a copy of what is on this disk."""
    place = Path(name).expanduser()
    if not (place.is_absolute() or name.startswith((".", "~"))):
        owned, _, asked = name.partition("@")
        spec["id"] = owned.rsplit("/", 1)[-1].replace("-", "_").lower()
        version = version or asked or None
        spec["package"] = owned.rsplit("/", 1)[-1] + (f"=={version}" if version else "")
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*(==[A-Za-z0-9.+!_-]+)?", spec["package"]):
            raise ConfigurationError(
                f"'{name}' names no environment: expected NAME, OWNER/NAME or a path such as ./NAME."
            )
        return
    if not place.exists():
        raise ConfigurationError(
            f"{place} does not exist.", remedy="Name a module (.py), a package's folder or a wheel."
        )
    place = place.resolve()
    spec.update(local=True, id=place.name.split("-")[0] if place.suffix == ".whl" else place.stem.replace("-", "_"))
    kept = staged / KEPT / place.name
    kept.parent.mkdir()
    if place.is_dir():
        shutil.copytree(place, kept, symlinks=True, ignore=shutil.ignore_patterns("__pycache__", ".git", ".venv"))
    else:
        shutil.copy2(place, kept)
    if place.suffix == ".whl" or (place / "pyproject.toml").is_file():
        spec["package"] = place.name
    elif not (place.suffix == ".py" or (place / "__init__.py").is_file()):
        raise ConfigurationError(f"{place} is no module (.py), package's folder or wheel.")
    spec["digest"] = _digest(staged / KEPT)


def _describe(address: str, spec: dict[str, Any], generations: list[str], staged: Path) -> dict[str, Any]:
    """Ask the environment itself, with the newest generation that can play it."""
    refused: list[str] = []
    for generation in generations:
        release, player = GENERATIONS[generation]
        spec.update(generation=generation, player=player)
        plain, package = VerifiersEnvironment(generation), spec["package"]
        try:
            if package and not spec["local"]:
                plain.ensure()
                if plain.has_taskset(spec["id"]):
                    spec["package"] = None
            said = _ask(spec, staged)
        except ConfigurationError as error:
            spec["package"] = package
            refused.append(
                f"{error.message}" if error.message.startswith(str(package)) else f"{release}: {error.message}"
            )
            continue
        if "error" not in said:
            return said
        spec["package"] = package
        refused.append(f"with {release}: {said['error']['type']}: {said['error']['message']}")
    raise ConfigurationError(f"{address} does not load. {' | '.join(refused)}")


def _ask(spec: Mapping[str, Any], staged: Path) -> dict[str, Any]:
    environment = environment_of(spec, staged)
    python = environment.ensure()
    env = environment.process_env(tuple(spec["allow_env"]), module_folder(spec, staged))
    try:
        done = subprocess.run(
            [str(python), str(WORKER), "describe"], input=json.dumps(spec) + "\n", env=env, cwd=staged,
            capture_output=True, text=True, timeout=_DESCRIBE, check=False,
        )  # fmt: skip
        said = json.loads(done.stdout.splitlines()[-1])
    except subprocess.TimeoutExpired:
        raise ConfigurationError(f"it did not list its tasks within {_DESCRIBE:g} s.") from None
    except (ValueError, IndexError):
        last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        raise ConfigurationError(f"its process ended without a word: {last[:400]}") from None
    if "error" not in said and not said["tasks"]:
        raise ConfigurationError("it has no task.")
    return dict(said)


def _write(staged: Path, spec: Mapping[str, Any], said: Mapping[str, Any]) -> None:
    """A folder for each task. What all tasks share is in each, so that one can be loaded alone."""
    shared = {"spec": dict(spec), **{key: said[key] for key in ("tools", "seats", "version")}}
    for number, task in enumerate(said["tasks"]):
        folder = staged / f"{spec['id'].replace('_', '-')}-{number:05d}"
        folder.mkdir()
        (folder / FILE).write_text(json.dumps({**shared, "task": task}, indent=1, ensure_ascii=False), "utf-8")


def _digest(folder: Path) -> str:
    sum_ = hashlib.sha256()
    for file in _files(folder):
        name = file.relative_to(folder).as_posix()
        sum_.update(repr((name, os.access(file, os.X_OK), hashlib.sha256(file.read_bytes()).hexdigest())).encode())
    return sum_.hexdigest()


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in sorted(folder.rglob("*")) if path.is_file() and not path.is_symlink())


def _inside(root: Path, path: str | None) -> Path:
    found = root / (path or "")
    if not found.resolve().is_relative_to(root.resolve()) or not found.is_dir():
        raise ConfigurationError(f"there is no task '{path}'.")
    return found
