"""Rules of single config values and between the values of one table, for `config`."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from itertools import combinations
from pathlib import PurePosixPath
from typing import Any

from benchflow_adapter_harbor.hosts import check_network
from benchflow_adapter_harbor.readers import MISSING, boolean, number, wrong
from benchflow_adapter_harbor.report import Report, Where, dotted

ARTIFACTS_DIR = {"linux": "/logs/artifacts", "windows": "C:/logs/artifacts"}

_PACKAGE = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9._-]*/[a-zA-Z0-9][a-zA-Z0-9._-]*")
_SERVICE = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_.-]*")
_TOPOLOGY = re.compile(r"[1-9]\d*(x[1-9]\d*)+")
_DRIVE = re.compile(r"[A-Za-z]:[/\\]")
_ENV_NAME = re.compile(r"[A-Z_][A-Z0-9_]*")
_NOT_IN_A_NAME = re.compile(r'[<>:"/\\|?*\x00-\x1f\x7f]')
_DEVICE = re.compile(r"CON|PRN|AUX|NUL|CONIN\$|CONOUT\$|(COM|LPT)[1-9¹²³]", re.IGNORECASE)
_UNITS = {"G": 1024.0, "M": 1.0, "K": 1 / 1024}


def package_name(value: Any, where: Where, report: Report) -> Any:
    if isinstance(value, str) and _PACKAGE.fullmatch(value) and ".." not in value:
        return value
    return wrong(value, where, report, "'org/name' of letters, digits, '.', '_' and '-'")


def service(value: Any, where: Where, report: Report) -> Any:
    if isinstance(value, str) and _SERVICE.fullmatch(value.strip()):
        return value.strip()
    return wrong(value, where, report, "the name of a compose service")


def topology(value: Any, where: Where, report: Report) -> Any:
    if isinstance(value, str) and _TOPOLOGY.fullmatch(value.strip()):
        return value.strip()
    return wrong(value, where, report, "dimensions like '2x4' or '2x2x1'")


def absolute(value: Any, where: Where, report: Report) -> Any:
    if isinstance(value, str) and value.strip().startswith("/"):
        return value.strip()
    return wrong(value, where, report, "an absolute path")


def transport(value: Any, where: Where, report: Report) -> Any:
    known = {"stdio": "stdio", "sse": "sse", "streamable-http": "http", "http": "http"}
    if isinstance(value, str) and value in known:
        return known[value]
    return wrong(value, where, report, "sse, stdio or streamable-http")


def schema_version(value: Any, where: Where, report: Report) -> Any:
    """Harbor compares it with nothing; BenchFlow knows major version 1."""
    if not isinstance(value, str):
        return wrong(value, where, report, 'text in quotes, e.g. "1.4"')
    if report.strict and value.split(".", 1)[0] != "1":
        return wrong(value, where, report, 'a version of the schema that is known, e.g. "1.3"')
    return value


def step_name(value: Any, where: Where, report: Report) -> Any:
    """One folder name that every system can have."""
    bad = (
        not isinstance(value, str)
        or not value.strip()
        or value in {".", ".."}
        or value.endswith((".", " "))
        or _NOT_IN_A_NAME.search(value) is not None
        or _DEVICE.fullmatch(value.partition(".")[0].rstrip(" ")) is not None
        or len(value.encode("utf-8", "surrogatepass")) > 255
    )
    return wrong(value, where, report, "a folder name that every system can have") if bad else value


def min_reward(value: Any, where: Where, report: Report) -> Any:
    if not isinstance(value, dict):
        return number(value, where, report)
    found = {key: number(entry, (*where, key), report) for key, entry in value.items()}
    return MISSING if MISSING in found.values() else found


def reward_range(value: Any, where: Where, report: Report) -> Any:
    """May only widen [0, 1], so that nothing done and solved keep their meaning."""
    numbers = isinstance(value, list) and len(value) == 2 and all(type(v) in (int, float) for v in value)
    if numbers and float("-inf") < value[0] <= 0 and 1 <= value[1] < float("inf"):
        return float(value[0]), float(value[1])
    return wrong(value, where, report, "[low, high] with low <= 0 and high >= 1")


def artifact_source(value: Any, where: Where, report: Report) -> Any:
    if isinstance(value, str) and ".." not in PurePosixPath(value).parts:
        return value
    return wrong(value, where, report, "a path without '..'")


def artifact_destination(value: Any, where: Where, report: Report) -> Any:
    if value == "":
        return None
    expected = "a relative path with forward slashes and without '..'"
    if not isinstance(value, str) or "\\" in value:
        return wrong(value, where, report, expected)
    path = PurePosixPath(value)
    if path.is_absolute() or not path.parts or ".." in path.parts:
        return wrong(value, where, report, expected)
    if value.rstrip("/") == "manifest.json":
        return wrong(value, where, report, "something else than manifest.json, which is ours")
    return value


def check_artifact(entry: Any, where: Where, report: Report) -> None:
    if entry.service not in (None, "main") and not _is_absolute(entry.source):
        message = f"{dotted(where)}: the source of an artifact of service '{entry.service}' must be an absolute path"
        report.problem(where, message)


def _is_absolute(path: str) -> bool:
    return path.startswith("/") or _DRIVE.match(path) is not None


def check_environment(found: Any, where: Where, report: Report) -> None:
    check_network(found.network_mode or "public", found.allowed_hosts, where, report)


def check_own_network(found: Any, where: Where, report: Report) -> None:
    check_network(found.network_mode, found.allowed_hosts, where, report)


def check_mcp(server: Any, where: Where, report: Report) -> None:
    needed = "command" if server.transport == "stdio" else "url"
    if not getattr(server, needed):
        shown = "streamable-http" if server.transport == "http" else server.transport
        report.problem(where, f"{dotted((*where, needed))} is required for transport '{shown}'", code="missing-key")


def check_verifier(found: Any, where: Where, report: Report) -> None:
    check_network(found.network_mode, found.allowed_hosts, where, report)
    if found.environment_mode == "shared" and found.environment is not None:
        message = f"{dotted(where)}: environment_mode 'shared' contradicts the environment of its own"
        remedy = "Remove one of the two, or set environment_mode to 'separate'."
        report.problem((*where, "environment_mode"), message, remedy=remedy)


def prepare_environment(data: dict[str, Any], where: Where, report: Report) -> dict[str, Any]:
    """The older spellings: `memory` and `storage` as text, `allow_internet`, `image`."""
    for old in ("memory", "storage"):
        if old in data:
            _legacy_size(data, old, where, report)
    _rename(data, "image", "docker_image", where, report)
    if "allow_internet" in data:
        _legacy_internet(data, data.pop("allow_internet"), where, report)
    return data


def _legacy_size(data: dict[str, Any], old: str, where: Where, report: Report) -> None:
    value, new, at = data.pop(old), f"{old}_mb", (*where, old)
    if not isinstance(value, str) and not report.strict:
        report.notice(at, f"'{dotted(at)}' is ignored: it must be text like \"2G\"; use {new}")
        return
    size = str(value).strip().upper()
    try:
        megabytes = int(float(size[:-1]) * _UNITS[size[-1:]])
    except (KeyError, ValueError, OverflowError):
        report.problem(
            at, f'{dotted(at)} must be a size like "2G", "512M" or "100K", got {value!r}', remedy=f"Use {new}."
        )
        return
    if report.strict:
        data[new] = megabytes
    elif data.setdefault(new, megabytes) != megabytes:
        report.problem(at, f"{dotted(at)} = {value!r} contradicts {new} = {data[new]!r}", remedy=f"Keep {new}.")
    report.notice(at, f"'{dotted(at)}' is deprecated: write {new} = {megabytes}")


def _legacy_internet(data: dict[str, Any], value: Any, where: Where, report: Report) -> None:
    at = (*where, "allow_internet")
    allowed = None if value is None else boolean(value, at, report)
    if not isinstance(allowed, bool):
        return
    mode = "public" if allowed else "no-network"
    if "network_mode" in data or data.get("allowed_hosts") is not None:
        if report.strict and not allowed and data.get("network_mode") != mode:
            report.problem(at, f"{dotted(at)} = false contradicts network_mode = {data.get('network_mode')!r}")
        report.notice(at, f"'{dotted(at)}' is deprecated and overruled by network_mode")
        return
    data["network_mode"] = mode
    report.notice(at, f"'{dotted(at)}' is deprecated: write network_mode = \"{mode}\"")


def rename_sandbox_mode(data: dict[str, Any], where: Where, report: Report) -> dict[str, Any]:
    """BenchFlow says `sandbox` where Harbor says `environment`."""
    _rename(data, "sandbox_mode", "environment_mode", where, report)
    _rename(data, "sandbox", "environment", where, report)
    return data


def prepare_root(data: dict[str, Any], where: Where, report: Report) -> dict[str, Any]:
    if "schema_version" in data:
        data.pop("version", None)
    _rename(data, "version", "schema_version", where, report)
    _rename(data, "sandbox", "environment", where, report)
    _rename(data, "oracle", "solution", where, report)
    return data


def _rename(data: dict[str, Any], other: str, name: str, where: Where, report: Report) -> None:
    if other not in data:
        return
    value, at = data.pop(other), (*where, other)
    if name not in data:
        data[name] = value
        report.spelled[(*where, name)] = other
    elif report.strict:
        report.problem(at, f"{dotted(at)} and {name} mean the same", remedy="Keep one of the two.")
    else:
        report.notice(at, f"'{dotted(at)}' is ignored: {name} means the same and is given too")


def inline_solution_env(data: dict[str, Any], where: Where, report: Report) -> dict[str, Any]:
    """Some older tasks write variables right into the table, without `env`."""
    inline = {k: v for k, v in data.items() if isinstance(v, str) and _ENV_NAME.fullmatch(k)}
    env = data.get("env") or {}
    if not inline or not isinstance(env, dict):
        return data
    for key in inline:
        report.notice(
            (*where, key), f"'{dotted((*where, key))}' is read as a variable: write it under {dotted(where)}.env"
        )
    return {**{k: v for k, v in data.items() if k not in inline}, "env": {**inline, **env}}


def refuse_captures(data: dict[str, Any], where: Where, report: Report) -> dict[str, Any]:
    """A task does not write to the host, so what these ask for is refused rather than left out."""
    for key in [key for key in data if key.startswith("capture_dir")]:
        del data[key]
        report.problem((*where, key), f"{dotted((*where, key))} would write into the host's environment: not supported")
    return data


def check_root(config: Any, where: Where, report: Report) -> None:
    _unique_step_names(config.steps or (), report)
    folder = ARTIFACTS_DIR[config.environment.os or "linux"]
    _overlaps(config.artifacts, folder, ("artifacts",), report)
    for i, step in enumerate(config.steps or ()):
        if step.artifacts:
            _overlaps((*config.artifacts, *step.artifacts), folder, ("steps", i, "artifacts"), report)
    if config.steps and not report.strict:
        _step_timeout_quirk(config, report)


def _unique_step_names(steps: Iterable[Any], report: Report) -> None:
    seen: set[str] = set()
    for i, step in enumerate(steps):
        key = unicodedata.normalize("NFC", step.name).casefold()
        if key in seen:
            report.problem(("steps", i, "name"), f"two steps are named {step.name!r}", remedy="Rename one.")
        seen.add(key)


def _overlaps(entries: tuple[Any, ...], folder: str, where: Where, report: Report) -> None:
    """Two entries that land on the same place: the first is kept, the others are skipped, and that is said."""
    sources = [e.source for e in entries]
    if not any(e.source.rstrip("/") == folder and e.service in (None, "main") for e in entries):
        sources.insert(0, folder)
    for kind, paths in (("sources", sources), ("destinations", [e.destination for e in entries if e.destination])):
        for a, b in combinations(paths, 2):
            first, second = PurePosixPath(a), PurePosixPath(b)
            if first == second or first in second.parents or second in first.parents:
                report.notice(where, f"artifact {kind} {a!r} and {b!r} overlap: the first to be collected is kept")


def _step_timeout_quirk(config: Any, report: Report) -> None:
    task_level = config.verifier.timeout_sec
    quiet = [i for i, step in enumerate(config.steps) if step.verifier.timeout_sec is None]
    if task_level is not None and task_level != 600 and quiet:
        names = ", ".join(config.steps[i].name for i in quiet)
        what = f"as in Harbor, verifier.timeout_sec = {task_level:g} does not reach the steps: {names} get 600 s"
        report.notice(("verifier", "timeout_sec"), what)
