"""`-a ./agent.toml`: a plain ACP agent described by a file, for whom a plugin would be too much."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchflow_layers import NODE, npm_layers

from benchflow_core.contracts import AgentContext, AgentSpec, AuthOption, Launch, Layer
from benchflow_core.errors import ConfigurationError

if TYPE_CHECKING:
    from benchflow_agent_command.manifest_schema import AgentManifest

__all__ = ["manifest_agent"]

_PLACE = re.compile(r"\$\{([a-z_]+)\}")
_SECRET = "key"


def manifest_agent(name: str) -> AgentSpec:
    """Read and check the file; nothing of it runs on this host."""
    path = Path(name)
    manifest = _read(path)
    prefix = f"/opt/benchflow/agents/{manifest.name}"
    return AgentSpec(
        summary=manifest.description or f"ACP agent of {path.name}",
        prepare=lambda context: _prepare(manifest, prefix, context),
        takes_model=True,
        options={},
        layers=_layers(manifest, prefix, path.parent),
        wires=manifest.wires,
        auth=tuple(AuthOption("api-key", env=(variable,)) for variable in manifest.requires_env),
        default_model=manifest.default_model,
        model_in_session=manifest.model_in_session,
        session_mode=manifest.session_mode,
        mcp=manifest.mcp,
        skill_paths=manifest.skill_paths,
        helper_models=manifest.helper_models,
        errors_are_silent=manifest.errors_are_silent,
        handshake_timeout=manifest.handshake_timeout,
        version=manifest.version,
        reports_version=manifest.reports_version,
    )


def _read(path: Path) -> AgentManifest:
    from pydantic import ValidationError

    from benchflow_agent_command.manifest_schema import AgentManifest

    try:
        manifest = AgentManifest.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be read: {error.strerror}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path} is not TOML: {error}.") from None
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "top level"
        raise ConfigurationError(f"{path}: {where}: {first['msg']}.", remedy="See docs/agents/manifest.md.") from None
    values = dict.fromkeys(("prefix", "node", "home", "workdir", "model", "base_url", _SECRET), "")
    texts = [*manifest.launch, *manifest.env.values(), *manifest.files, *manifest.files.values()]
    for place in (found for text in texts for found in _PLACE.findall(text)):
        if place not in values:
            raise ConfigurationError(f"{path}: there is no ${{{place}}}; known: {', '.join(values)}.")
    if any(f"${{{_SECRET}}}" in argument for argument in manifest.launch):
        raise ConfigurationError(
            f"{path}: launch: everybody in the box can read a command line.", remedy="Put ${key} into [env] or [files]."
        )
    return manifest


def _layers(manifest: AgentManifest, prefix: str, folder: Path) -> tuple[Layer, ...]:
    install = manifest.install
    lock = _lock(folder / install.lock) if install.lock else None
    layers: tuple[Layer, ...] = npm_layers(prefix, *install.npm, lock=lock) if install.npm else ()
    if install.run:
        commands = tuple(tuple(argument.replace("${prefix}", "{prefix}") for argument in argv) for argv in install.run)
        key = f"{manifest.name}@{manifest.version}"
        layers = (*layers, Layer(key=key, prefix=f"{prefix}-run" if layers else prefix, install=commands))
    return layers


def _lock(path: Path) -> bytes:
    import json

    try:
        content = path.read_bytes()
        known = "packages" in json.loads(content)
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be read: {error.strerror}.") from None
    except (ValueError, TypeError):
        known = False
    if not known:
        raise ConfigurationError(
            f"{path} is not a lock of npm.", remedy="Write it with: npm install --package-lock-only NAME@VERSION"
        )
    return content


def _prepare(manifest: AgentManifest, prefix: str, context: AgentContext) -> Launch:
    endpoint = context.endpoint
    values = {
        "prefix": prefix,
        "node": NODE,
        "home": context.home.rstrip("/"),
        "workdir": context.workdir,
        "model": endpoint.model if endpoint else context.model or "",
        "base_url": endpoint.base_url if endpoint else "",
        _SECRET: endpoint.key if endpoint else "",
    }
    files = {_filled(path, values): _filled(text, values).encode() for path, text in manifest.files.items()}
    return Launch(
        argv=tuple(_filled(argument, values) for argument in manifest.launch),
        env={name: _filled(value, values) for name, value in manifest.env.items()},
        files={_absolute(path, context): content for path, content in files.items()},
    )


def _filled(text: str, values: Mapping[str, Any]) -> str:
    return _PLACE.sub(lambda found: values[found[1]], text)


def _absolute(path: str, context: AgentContext) -> str:
    if path.startswith("~/"):
        return f"{context.home.rstrip('/')}/{path[2:]}"
    return path if path.startswith("/") else f"{context.workdir.rstrip('/')}/{path}"
