"""Job files in Harbor's shape, rewritten in the core's words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchflow_core.contracts import JobFile
from benchflow_core.errors import ConfigurationError

__all__ = ["rewrite_job"]

_AGENT = ("name", "model_name", "reasoning_effort", "env", "kwargs")
_DATASET = ("path", "name", "version", "task_names", "exclude_task_names")
_ENVIRONMENT = ("type", "env")
_ORCHESTRATOR = ("n_concurrent_trials", "retry", "type")


def rewrite_job(values: dict[str, Any], file: JobFile) -> None:
    """Rewrite the values in place. A part that the core has no word for is refused where it stands."""
    if isinstance(values.get("agents"), list):
        _agents(values, file)
    if isinstance(values.get("datasets"), list):
        _datasets(values, file)
    if isinstance(values.get("sandbox"), dict):
        _environment(values, file)
    if isinstance(values.get("orchestrator"), dict):
        _orchestrator(values, file)


def _agents(values: dict[str, Any], file: JobFile) -> None:
    """One agent is the job's; several are arms."""
    found: dict[str, dict[str, Any]] = {}
    for number, agent in enumerate(values.pop("agents")):
        at = ("agents", number)
        if not isinstance(agent, dict) or not isinstance(agent.get("name"), str):
            raise ConfigurationError(f"{file.where(*at)}: an agent needs 'name'.")
        file.refuse_unknown(agent, _AGENT, *at)
        choice = {
            "agent": agent["name"],
            "model": agent.get("model_name"),
            "reasoning_effort": agent.get("reasoning_effort"),
            "agent_env": agent.get("env"),
            "agent_options": {key: str(value) for key, value in (agent.get("kwargs") or {}).items()},
        }
        model = f"+{agent['model_name']}" if agent.get("model_name") else ""
        found[agent["name"] + model] = {key: value for key, value in choice.items() if value}
    if len(found) == 1:
        for name, value in next(iter(found.values())).items():
            file.take(values, name, value, "agents", 0)
    elif found:
        file.take(values, "matrix", {"agents": found}, "agents")


def _datasets(values: dict[str, Any], file: JobFile) -> None:
    datasets = values.pop("datasets")
    if len(datasets) != 1 or not isinstance(datasets[0], dict):
        raise ConfigurationError(f"{file.where('datasets')}: a job has one set of tasks here; make a job of each.")
    [dataset] = datasets
    file.refuse_unknown(dataset, _DATASET, "datasets", 0)
    if "path" in dataset:
        file.take(values, "tasks_dir", dataset["path"], "datasets", 0, "path")
    elif "name" in dataset:
        file.take(values, "dataset", f"{dataset['name']}@{dataset.get('version', '')}", "datasets", 0, "name")
    for old, new in (("task_names", "include_tasks"), ("exclude_task_names", "exclude_tasks")):
        if dataset.get(old):
            file.take(values, new, dataset[old], "datasets", 0, old)


def _environment(values: dict[str, Any], file: JobFile) -> None:
    environment = values.pop("sandbox")
    file.refuse_unknown(environment, _ENVIRONMENT, "environment")
    if environment.get("type"):
        values["sandbox"] = environment["type"]
    given = environment.get("env") or {}
    if isinstance(given, list):
        pairs = [str(pair).partition("=") for pair in given]
        given = {name: value if sign else f"${{{name}}}" for name, sign, value in pairs}
    if isinstance(given, Mapping) and given:
        values["agent_env"] = {**given, **(values.get("agent_env") or {})}


def _orchestrator(values: dict[str, Any], file: JobFile) -> None:
    orchestrator = values.pop("orchestrator")
    file.refuse_unknown(orchestrator, _ORCHESTRATOR, "orchestrator")
    if "n_concurrent_trials" in orchestrator:
        file.take(values, "concurrency", orchestrator["n_concurrent_trials"], "orchestrator", "n_concurrent_trials")
    retry = orchestrator.get("retry")
    if isinstance(retry, dict) and "max_retries" in retry:
        file.take(values, "max_retries", retry["max_retries"], "orchestrator", "retry")
