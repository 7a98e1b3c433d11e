"""Tasks: finding, loading, checking and identifying them. Loading one runs nothing of it."""

from benchflow_core.task.digest import task_digest
from benchflow_core.task.env import HostVariable, requested_host_vars, resolve_env
from benchflow_core.task.files import TaskFile, task_files
from benchflow_core.task.load import adapter_of, find_tasks, load_task
from benchflow_core.task.needs import required_capabilities, wanted_capabilities
from benchflow_core.task.steps import meets_minimum

__all__ = [
    "HostVariable",
    "TaskFile",
    "adapter_of",
    "find_tasks",
    "load_task",
    "meets_minimum",
    "requested_host_vars",
    "required_capabilities",
    "resolve_env",
    "task_digest",
    "task_files",
    "wanted_capabilities",
]
