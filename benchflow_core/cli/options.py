"""Options that several commands share, each written once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import click

from benchflow_core.cli.completion import plugin_name, task_path
from benchflow_core.errors import UsageError

__all__ = ["key_values", "options", "rollout_options"]


def key_values(pairs: Iterable[str], option: str) -> dict[str, str]:
    """`K=V` pairs of a repeatable option."""
    result = {}
    for pair in pairs:
        key, separator, value = pair.partition("=")
        if not separator or not key:
            raise UsageError(f"{option} '{pair}': expected KEY=VALUE.")
        result[key] = value
    return result


def options(*decorators: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Several options as one decorator, in the order given."""

    def apply(function: Any) -> Any:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return apply


rollout_options = options(
    click.option(
        "-t",
        "--tasks-dir",
        "--task",
        "tasks_dir",
        type=click.Path(),
        shell_complete=task_path,
        help="A task, or a folder of tasks.",
    ),
    click.option(
        "-a", "--agent", shell_complete=plugin_name("agent"), help="An installed agent, or 'cmd:…' for any ACP command."
    ),
    click.option("-m", "--model", help="The model, as provider/name or as the agent knows it."),
    click.option("--reasoning-effort", help="none, minimal, low, medium, high, xhigh or max."),
    click.option(
        "-e",
        "--sandbox",
        "--environment",
        "--env",
        "sandbox",
        shell_complete=plugin_name("sandbox"),
        help="Where to run; without it the best-ranked that answers.",
    ),
    click.option(
        "--sandbox-option",
        "sandbox_options",
        multiple=True,
        metavar="K=V",
        help="An option of the sandbox; repeatable.",
    ),
    click.option("--sandbox-user", help="Run agents as this user of the box; it is made if missing."),
    click.option(
        "--sandbox-setup-timeout",
        type=float,
        default=120.0,
        show_default=True,
        help="Seconds for preparing the agent's user and files.",
    ),
    click.option("--agent-env", multiple=True, metavar="K=V", help="A variable for the agent; repeatable."),
    click.option(
        "--agent-option", "agent_options", multiple=True, metavar="K=V", help="An option of the agent; repeatable."
    ),
    click.option(
        "--agent-idle-timeout",
        default="600",
        show_default=True,
        help="Seconds without a sign of life; 0 or none: no limit.",
    ),
    click.option("--timeout", type=float, help="Seconds for the agent, instead of the task's own limit."),
    click.option(
        "--prompt",
        "prompts",
        multiple=True,
        help="A prompt instead of the task's instruction; repeatable, one turn each.",
    ),
    click.option(
        "--isolation",
        type=click.Choice(["fresh", "shared", "separate"]),
        help="Verifier isolation; without it the strongest possible.",
    ),
    click.option(
        "--no-verify", "verify", is_flag=True, flag_value=False, default=True, help="Do not verify: nothing is scored."
    ),
    click.option(
        "--permissions",
        type=click.Choice(["allow", "reject"]),
        default="allow",
        show_default=True,
        help="How permission requests of an agent are answered.",
    ),
    click.option("--allow-env", multiple=True, metavar="NAME", help="A host variable the task may read; repeatable."),
    click.option(
        "--allow-substitute",
        is_flag=True,
        help="Run on the sandbox's own files where it cannot have the task's image; marked in the result.",
    ),
    click.option("--base-image-override", metavar="IMAGE", help="Use this image for every FROM."),
    click.option("-o", "--jobs-dir", type=click.Path(), default="jobs", show_default=True, help="Where results go."),
    click.option("--job-name", help="The job's folder; without it the time."),
)
