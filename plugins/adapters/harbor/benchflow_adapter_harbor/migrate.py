"""From a Harbor folder to a `task.md`: settings and instruction in one document, the other folders as they are."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from benchflow_adapter_harbor.config import read_config
from benchflow_adapter_harbor.files import problem, read_text
from benchflow_adapter_harbor.frontmatter import split_document
from benchflow_adapter_harbor.harbor_load import strip_canary
from benchflow_adapter_harbor.prompts import escape_headings
from benchflow_adapter_harbor.report import Report, Where, dotted
from benchflow_adapter_harbor.tomlfile import line_in_toml, parse_toml
from benchflow_core.contracts.adapters import Migration

_LIMITS = {"cpus": "1 CPU", "memory_mb": "2048 MB of memory", "storage_mb": "10240 MB of storage"}


def migrate_to_taskmd(path: Path) -> Migration:
    """The document, and what it cannot say. The tests keep their folder, and with it their place in the box."""
    file = path / "task.toml"
    if not file.is_file():
        raise problem(path, "has no task.toml to make a task.md of", code="not-a-task")
    text = read_text(file, path)
    report = Report(file, partial(line_in_toml, text), strict=False)
    data = parse_toml(text, file)
    config = read_config(data, (), report)
    report.raise_first()
    data = parse_toml(text, file)
    extra = {dotted(where): _pop(data, where) for where in report.unknown_keys}
    if extra:
        data["benchflow"] = {"compat": {"source": "harbor", "extra": extra}}
    instruction = "" if config.steps else read_text(path / "instruction.md", path)
    body = strip_canary(instruction)
    canary = [line for line in instruction[: len(instruction) - len(body)].split("\n") if line.strip()]
    document = _render(_native_names(data), canary, body)
    _refuse_what_is_stricter(document, path)
    superseded = ("task.toml",) if config.steps else ("task.toml", "instruction.md")
    return Migration({"task.md": document}, superseded, tuple(_losses(config, extra)))


def _pop(data: Any, where: Where) -> Any:
    for part in where[:-1]:
        data = data[part]
    return data.pop(where[-1])


def _native_names(data: dict[str, Any]) -> dict[str, Any]:
    """BenchFlow's names for Harbor's tables."""
    version = data.pop("version", None)
    named: dict[str, Any] = {"schema_version": data.pop("schema_version", version or "1.4")}
    for key, value in data.items():
        named[{"environment": "sandbox", "solution": "oracle"}.get(key, key)] = value
    for holder in (named, *named.get("steps", [])):
        if "verifier" in holder:
            names = {"environment": "sandbox", "environment_mode": "sandbox_mode"}
            holder["verifier"] = {names.get(k, k): v for k, v in holder["verifier"].items()}
    return named


def _render(frontmatter: dict[str, Any], canary: list[str], body: str) -> str:
    import yaml

    comments = "".join(f"# {line}\n" for line in canary)
    head = yaml.safe_dump(frontmatter, sort_keys=False, allow_unicode=True, width=110)
    return f"---\n{comments}{head}---\n\n{escape_headings(body.strip())}\n"


def _refuse_what_is_stricter(text: str, path: Path) -> None:
    """Harbor takes values that the document format does not: better said now than at the next load."""
    document = split_document(text, path / "task.md")
    report = Report(path / "task.toml", lambda where: None, strict=True)
    read_config({k: v for k, v in document.data.items() if k != "benchflow"}, (), report)
    report.raise_first()


def _losses(config: Any, extra: dict[str, Any]) -> list[str]:
    losses = ["Rewards must lie between 0 and 1 now, or within verifier.reward_range."]
    unlimited = [text for key, text in _LIMITS.items() if getattr(config.environment, key) is None]
    if unlimited:
        losses.append(f"What had no limit gets BenchFlow's: {', '.join(unlimited)}.")
    if extra:
        losses.append(f"Unknown keys were moved to benchflow.compat.extra: {', '.join(extra)}.")
    return losses
