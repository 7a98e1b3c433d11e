"""An immutable copy: named by its content, put in place by one rename, so that concurrent use is safe."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from pathlib import Path

from benchflow_core.contracts import Fetched, SourceRequest
from benchflow_core.errors import ConfigurationError


def fetch_folder(request: SourceRequest, name: str) -> Fetched:
    folder = Path(name)
    if not folder.is_dir():
        raise ConfigurationError(f"{request.uri}: there is no folder {name}.")
    request.cache_dir.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=request.cache_dir) as staging:
        copy = shutil.copytree(folder, Path(staging) / "copy", symlinks=True)
        digest = _digest(Path(copy))
        target = request.cache_dir / digest
        if not target.exists():
            os.rename(copy, target)
    provenance = {
        "type": "{{name}}",
        "uri": request.uri,
        "requested_ref": request.ref,
        "resolved_sha": digest,
        "path": request.path,
    }
    return Fetched(target / (request.path or ""), provenance)


def _digest(folder: Path) -> str:
    found = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        content = os.readlink(path).encode() if path.is_symlink() else path.read_bytes() if path.is_file() else b""
        found.update(repr((str(path.relative_to(folder)), len(content))).encode() + content)
    return found.hexdigest()
