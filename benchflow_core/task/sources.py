"""Tasks that are not in a local folder: every installed source is asked, in order of rank, whether it serves a URI."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from benchflow_core.contracts.sources import Fetched, SourceRequest
from benchflow_core.errors import ConfigurationError, PluginFailed
from benchflow_core.plugins import Loaded, registry
from benchflow_core.plugins.guard import failed, wrong_type
from benchflow_core.task.digest import task_digest

__all__ = ["fetch_source", "refuse_unserved"]


def fetch_source(
    uri: str,
    *,
    path: str | None = None,
    ref: str | None = None,
    cache: Path,
    options: Mapping[str, str] | None = None,
) -> Fetched:
    """Return an immutable local copy of what a source has there. Blocking.

    Raises `ConfigurationError` when no source serves it, and when a task is not what the source pins.
    """
    source = _source_of(uri)

    def fetch(uri: str, path: str | None, ref: str | None) -> Fetched:
        return fetch_source(uri, path=path, ref=ref, cache=cache)

    folder = cache / "sources" / source.name
    request = SourceRequest(uri, path, ref, cache_dir=folder, options=options or {}, fetch=fetch)
    try:
        fetched: Fetched = source.spec.fetch(request)
    except OSError as error:
        raise ConfigurationError(f"{uri} cannot be fetched: {error.strerror or error}.") from error
    if not isinstance(fetched, Fetched):
        raise wrong_type(source.who, "fetch", fetched, Fetched)
    if not fetched.root.exists():
        raise failed(source.who, "fetch", FileNotFoundError(f"{fetched.root} is not there"))
    _refuse_changed(uri, fetched)
    return fetched


def _refuse_changed(uri: str, fetched: Fetched) -> None:
    wrong = []
    for path, pinned in zip(fetched.tasks, fetched.digests, strict=False):
        found = task_digest(path) if path.is_dir() else "nothing there"
        if found != pinned:
            wrong.append(f"{path.name} (pinned {pinned[:19]}…, found {found[:19]})")
    if wrong:
        more = " …" if len(wrong) > 5 else ""
        raise ConfigurationError(
            f"{uri}: the content of {len(wrong)} of {len(fetched.tasks)} tasks is not what the registry pins: "
            f"{'; '.join(wrong[:5])}{more}.",
            remedy="Nothing was run. Tell the dataset's maintainers.",
            details={"tasks": wrong},
        )


def refuse_unserved(uri: str, what: str, package: str = "") -> None:
    """Raise `ConfigurationError` where no installed source serves `uri`; `package` is the one that would."""
    if _find(uri) is None:
        raise ConfigurationError(
            f"no installed source serves {what}.", remedy=f"Try: pip install {package}" if package else _installed()
        )


def _find(uri: str) -> Loaded | None:
    for source in _sources():
        try:
            if source.spec.matches(uri):
                return source
        except (PluginFailed, OSError) as error:  # another one may serve it
            registry().warn(error if isinstance(error, PluginFailed) else failed(source.who, "matches", error))
    return None


def _sources() -> list[Loaded]:
    return sorted(registry().all("source"), key=lambda source: (source.spec.rank, source.name))


def _source_of(uri: str) -> Loaded:
    if (found := _find(uri)) is not None:
        return found
    raise ConfigurationError(f"no installed source serves '{uri}'.", remedy=_installed())


def _installed() -> str:
    have = "; ".join(f"{source.name}: {source.spec.summary}" for source in _sources())
    return f"Installed: {have}." if have else "None is installed. Try: pip install benchflow"
