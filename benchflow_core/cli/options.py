"""Options that several commands share, each written once."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

import click

from benchflow_core.cli.completion import plugin_name, task_path
from benchflow_core.errors import UsageError

__all__ = ["key_values", "names", "options", "rollout_options", "task_options", "typed"]


def key_values(pairs: Iterable[str], option: str) -> dict[str, str]:
    """`K=V` pairs of a repeatable option."""
    result = {}
    for pair in pairs:
        key, separator, value = pair.partition("=")
        if not separator or not key:
            raise UsageError(f"{option} '{pair}': expected KEY=VALUE.")
        result[key] = value
    return result


_ONE_VALUE = re.compile(r"[a-z]+:(?!:)")


def names(values: Iterable[str]) -> list[str]:
    """Split the values of an option that may be repeated or list several; `kind:text` is one, commas and all."""
    found = [part for v in values for part in ([v] if _ONE_VALUE.match(v) else v.split(","))]
    return list(dict.fromkeys(part.strip() for part in found if part.strip()))


def typed(ctx: click.Context) -> dict[str, Any]:
    """The options that were on the command line, without those that only have their default."""
    default = (click.core.ParameterSource.DEFAULT, click.core.ParameterSource.DEFAULT_MAP)
    return {name: value for name, value in ctx.params.items() if ctx.get_parameter_source(name) not in default}


def options(*decorators: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Several options as one decorator, in the order given."""

    def apply(function: Any) -> Any:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return apply


task_options = options(
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
        "--config",
        "--run-config",
        "config_file",
        type=click.Path(exists=True, dir_okay=False),
        help="A job file; options win over it.",
    ),
    click.option(
        "--config-override",
        "config_overrides",
        multiple=True,
        metavar="A.B=VALUE",
        help="A setting of the job file, or a mapping of them as {…} or @FILE; repeatable.",
    ),
    click.option("--source-repo", metavar="REPO", help="Tasks of a git repository: a URL, owner/name, or a folder."),
    click.option("--source-path", metavar="PATH", help="The task or the folder of tasks in it."),
    click.option("--source-ref", metavar="REF", help="Branch, tag or commit; without it the default branch as it is."),
    click.option(
        "--source-env", metavar="ADDRESS", help="Tasks of an environment: PROVIDER/NAME or whatever a source serves."
    ),
    click.option("--source-env-version", metavar="V", help="Its version."),
    click.option("-d", "--dataset", metavar="NAME@VERSION", help="A version of a dataset, verified by its digests."),
    click.option("--registry", metavar="WHERE", help="The dataset registry: a file, a URL or a repository."),
    click.option("--ignore-bench-version", is_flag=True, help="Run a dataset that wants another version of BenchFlow."),
    click.option(
        "--include", "include_tasks", multiple=True, metavar="GLOB", help="Only tasks of this name; repeatable."
    ),
    click.option(
        "--exclude", "exclude_tasks", multiple=True, metavar="GLOB", help="Not tasks of this name; repeatable."
    ),
    click.option(
        "--expected-tasks", type=click.IntRange(1), metavar="N", help="Refuse to run another number of tasks."
    ),
)

rollout_options = options(
    click.option(
        "-a",
        "--agent",
        multiple=True,
        shell_complete=plugin_name("agent"),
        help="An installed agent, or 'cmd:…' for any ACP command. Several, repeated or a,b: an arm each.",
    ),
    click.option(
        "-m",
        "--model",
        multiple=True,
        help="The model, as provider/name or as the agent knows it. Several, repeated or a,b: an arm each.",
    ),
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
    click.option("--sandbox-user", help="Run agents as this user of the box; it is made if missing. null: root."),
    click.option(
        "--sandbox-setup-timeout",
        type=click.FloatRange(0, min_open=True),
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
    click.option(
        "--timeout",
        type=click.FloatRange(0, min_open=True),
        help="Seconds for the agent, instead of the task's own limit.",
    ),
    click.option(
        "--prompt",
        "prompts",
        multiple=True,
        help="A prompt instead of the task's instruction; repeatable, one turn each.",
    ),
    click.option(
        "--isolation",
        metavar="POLICY",
        help="Verifier isolation: fresh, shared or separate; without it the strongest possible.",
    ),
    click.option(
        "--contested",
        type=click.Choice(["clean", "as-left", "unscored"]),
        default="clean",
        show_default=True,
        help="Which score counts where the reward depends on changes that could steer the tests.",
    ),
    click.option(
        "--no-certificates",
        "certificates",
        is_flag=True,
        flag_value=False,
        default=True,
        help="Never run a task's reference solution to settle such a score.",
    ),
    click.option(
        "--no-verify", "verify", is_flag=True, flag_value=False, default=True, help="Do not verify: nothing is scored."
    ),
    click.option(
        "--permissions",
        type=click.Choice(["allow", "ask", "reject"]),
        default="allow",
        show_default=True,
        help="allow: agents do not ask, or get a yes. ask: they ask, and get a yes unless the user says no. "
        "reject: they ask, and get a no.",
    ),
    click.option(
        "--client-methods",
        type=click.Choice(["none", "files", "terminal", "all"]),
        default="none",
        show_default=True,
        help="Serve ACP's fs and terminal methods, for agents that work through their client. They act in the box.",
    ),
    click.option(
        "--auth",
        type=click.Choice(["gateway", "native"]),
        default="gateway",
        show_default=True,
        help="native: the agent's login on this host goes into the box, past the gateway; marked in the result.",
    ),
    click.option("--allow-env", multiple=True, metavar="NAME", help="A host variable the task may read; repeatable."),
    click.option(
        "--allow-substitute",
        is_flag=True,
        help="Run on the sandbox's own files where it cannot have the task's image; marked in the result.",
    ),
    click.option(
        "--skill-mode",
        multiple=True,
        metavar="MODE",
        help="no-skill, with-skill or self-gen. Several: an arm each.",
    ),
    click.option("--skills-dir", type=click.Path(), help="Skills for the agent."),
    click.option(
        "--environment-manifest", metavar="PATH|NAME", help="The world the agent acts in: an environment.toml."
    ),
    click.option(
        "--state",
        metavar="JSON|NAMES|PATH",
        help='Only these services of the environment: gmail,gcal or {"tools": ["gmail"]}, or a file with that.',
    ),
    click.option(
        "--service", "services", multiple=True, metavar="NAME[:PORT]", help="A service for the agent; repeatable."
    ),
    click.option(
        "--loop-strategy", metavar="NAME[:K=V,…]", help="The driver that decides the prompts, with its parameters."
    ),
    click.option(
        "--usage-tracking",
        type=click.Choice(["auto", "required", "off"]),
        default="auto",
        show_default=True,
        help="required: refuse an agent whose tokens nobody counts, and fail a rollout whose count is not whole.",
    ),
    click.option("--base-image-override", metavar="IMAGE", help="Use this image for every FROM."),
    click.option(
        "--context-root",
        type=click.Path(exists=True, file_okay=False),
        help="The folder Dockerfiles copy from, instead of their task's own.",
    ),
    click.option("-o", "--jobs-dir", type=click.Path(), default="jobs", show_default=True, help="Where results go."),
    click.option("--job-name", help="The job's folder; without it the time."),
)
