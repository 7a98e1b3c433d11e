"""`--export`: everything a page shows, without a server. One file that opens from disk, or a folder for a web server.

Every text goes through the core's redaction first: known secrets, what looks like a key, the user's home folder.
"""

from __future__ import annotations

import base64
import gzip
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from itertools import permutations
from pathlib import Path
from typing import IO, Any, Final

from benchflow_command_view import assets
from benchflow_command_view.documents import Documents
from benchflow_core.errors import ConfigurationError

__all__ = ["export_file", "export_folder"]

_POLICY: Final = (
    "default-src 'none'; script-src {script}; style-src {style}; img-src data:; connect-src {connect}; "
    "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
_MARK: Final = "benchflow-view.json"
_LARGEST_FILE: Final = 512 << 10
_MOST_TRAFFIC: Final = 16 << 20
"""Bytes of requests per rollout: each repeats the conversation so far, and would outgrow everything else."""
_PAIRS: Final = 5
"""Up to so many jobs, each is compared with each."""


def documents_of(documents: Documents) -> Iterator[tuple[str, Any]]:
    """Every document that a page of the export may ask for, by its key, as it is."""
    yield "index", {**documents.index(), "exported": True}
    if documents.catalogue.session is not None:
        from benchflow_command_view.catalogue import safe

        yield from _rollout(documents, "session", safe(documents.catalogue.session.name))
        return
    yield "jobs", documents.jobs()
    jobs = list(documents.catalogue.jobs())
    for names in _compared(jobs):
        yield f"compare/{names}", documents.compare(names)
    for jid in jobs:
        job = documents.job(jid)
        yield f"job/{jid}", job
        yield f"panels/{jid}", documents.panels(jid)
        if len(job["summary"].get("arms") or {}) > 1:
            yield f"compare/{jid}", documents.compare(jid)
        column = job["columns"]["rollout"]
        for number in column["rows"]:
            try:
                yield from _rollout(documents, jid, column["texts"][number])
            except KeyError:
                continue  # planned and never begun


def _compared(jobs: list[str]) -> list[str]:
    if len(jobs) < 2:
        return []
    pairs = ["+".join(pair) for pair in permutations(jobs, 2)] if len(jobs) <= _PAIRS else []
    return list(dict.fromkeys(["+".join(jobs), *pairs]))


def _rollout(documents: Documents, jid: str, rid: str) -> Iterator[tuple[str, Any]]:
    where = f"{jid}/{rid}"
    rollout = documents.rollout(jid, rid)
    yield f"rollout/{where}", {**rollout, "running": False}
    yield f"panels/{where}", documents.panels(jid, rid)
    source = documents.source(documents.folder(jid, rid))
    for page in range(source.pages):
        steps = documents.steps(jid, rid, str(page))
        yield f"steps/{where}/{page}", steps
        for step in steps["steps"]:
            if step.get("cut"):
                yield f"step/{where}/{step['n']}", documents.step(jid, rid, str(step["n"]))
    used = 0
    for number in range(len(source.traffic)):
        exchange = source.traffic.get(number)
        used += len(json.dumps(exchange))
        if used > _MOST_TRAFFIC:
            break
        yield f"traffic/{where}/{number}", exchange
    for file in rollout["files"]:
        if file["size"] <= _LARGEST_FILE:
            yield f"file/{where}/{file['id']}", documents.file(jid, rid, file["id"])


def _clean(documents: Documents) -> Iterator[tuple[str, bytes]]:
    def hidden(value: Any) -> Any:
        if isinstance(value, str):
            if len(value) < 5:
                return value
            return documents.reader.hide(value.encode("utf-8", "replace")).decode("utf-8", "replace")
        if isinstance(value, dict):
            return {hidden(key): hidden(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [hidden(item) for item in value]
        return value

    for key, value in documents_of(documents):
        text = json.dumps(hidden(value), ensure_ascii=False, separators=(",", ":"), default=str)
        yield key, text.encode("utf-8", "replace")


# --- one file -----------------------------------------------------------------------------------------------


def export_file(documents: Documents, target: Path) -> dict[str, int]:
    """Written beside and put in place whole. The data is compressed, and base64: nothing in it can end its element.

    The two sizes together are the file's.
    """
    script, style = assets.script(), assets.style()
    rules = _POLICY.format(script=assets.content_hash(script), style=assets.content_hash(style), connect="'none'")
    head = f'<meta http-equiv="Content-Security-Policy" content="{rules}">\n<style>{style}</style>'
    first, last = assets.page().replace("{{head}}", head).split("{{body}}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("wb", dir=target.parent, prefix=f".{target.name}.", delete=False) as file:
            temporary = Path(file.name)
            try:
                file.write(first.encode())
                data = _embed(documents, file)
                file.write(f"<script>{script}</script>{last}".encode())
                file.close()
                temporary.chmod(0o666 & ~_umask())
                temporary.replace(target)
            finally:
                temporary.unlink(missing_ok=True)
    except OSError as error:
        raise ConfigurationError(f"cannot write {target}: {error.strerror or error}.") from error
    return {"documents": data[0], "data_bytes": data[1], "page_bytes": target.stat().st_size - data[1]}


def _embed(documents: Documents, file: IO[bytes]) -> tuple[int, int]:
    count = size = 0
    for key, text in _clean(documents):
        packed = base64.b64encode(gzip.compress(text, 6, mtime=0))
        file.write(b'<script type="application/x-benchflow" data-key="%s">' % key.encode())
        file.write(packed)
        file.write(b"</script>\n")
        count, size = count + 1, size + len(packed)
    return count, size


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


# --- a folder -----------------------------------------------------------------------------------------------


def export_folder(documents: Documents, target: Path) -> dict[str, int]:
    """Plain files for any web server. A folder with something else in it is left alone."""
    if target.is_dir() and any(target.iterdir()) and not (target / _MARK).exists():
        raise ConfigurationError(
            f"{target} is not empty and no earlier export.", remedy="Name a new folder, or a file that ends in .html."
        )
    count = size = static = 0
    try:
        target.mkdir(parents=True, exist_ok=True)
        static += (target / _MARK).write_text("{}\n")
        shutil.rmtree(target / "data", ignore_errors=True)
        for key, text in _clean(documents):
            path = target / "data" / f"{key}.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text)
            count, size = count + 1, size + len(text)
        rules = _POLICY.format(script="'self'", style="'self'", connect="'self'")
        head = (
            f'<meta http-equiv="Content-Security-Policy" content="{rules}">\n<link rel="stylesheet" href="style.css">'
        )
        page = assets.page().replace("{{head}}", head).replace("{{body}}", '<script src="app.js" defer></script>')
        for name, content in (("index.html", page), ("app.js", assets.script()), ("style.css", assets.style())):
            static += (target / name).write_bytes(content.encode())
    except OSError as error:
        raise ConfigurationError(f"cannot write {target}: {error.strerror or error}.") from error
    return {"documents": count, "data_bytes": size, "page_bytes": static}
