"""Options of how a job is run, apart from what it runs."""

from __future__ import annotations

import re
from typing import Any

import click

from benchflow_core.cli.completion import plugin_name
from benchflow_core.cli.options import options
from benchflow_core.errors import UsageError

__all__ = ["budget_options", "fail_under_option", "scheduling_options", "take_scheduling"]

_SECONDS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def _duration(ctx: click.Context, param: click.Parameter, value: str | None) -> float | None:
    """`90`, `90s`, `15m`, `2h` or `1d`, as seconds."""
    if value is None:
        return None
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smhd]?)", value.strip().lower())
    if found is None:
        raise click.BadParameter(f"'{value}' is not a duration: write 90, 90s, 15m, 2h or 1d.", ctx, param)
    return float(found[1]) * _SECONDS[found[2]]


def _share(ctx: click.Context, param: click.Parameter, value: float | None) -> float | None:
    """A NaN is below nothing: the gate would be open."""
    if value is not None and not 0 <= value <= 1:
        raise click.BadParameter(f"{value:g} is not between 0 and 1.", ctx, param)
    return value


fail_under_option = click.option(
    "--fail-under", type=float, callback=_share, metavar="X", help="Exit 1 when the score is below X (0 to 1)."
)

budget_options = options(
    click.option(
        "--max-cost", type=click.FloatRange(0), metavar="USD", help="Start nothing more once this much is spent."
    ),
    click.option(
        "--max-tokens", type=click.IntRange(0), metavar="N", help="Start nothing more once this many tokens are used."
    ),
    click.option("--max-time", callback=_duration, metavar="TIME", help="Start nothing more after 90s, 15m, 2h …"),
)

scheduling_options = options(
    budget_options,
    click.option(
        "--executor",
        metavar="NAME",
        shell_complete=plugin_name("executor"),
        help="Where rollouts run; without it in the process of the job.",
    ),
    click.option(
        "--executor-option",
        "executor_options",
        multiple=True,
        metavar="K=V",
        help="An option of the executor; repeatable.",
    ),
    click.option("--seed", type=int, default=0, show_default=True, help="What the order of rollouts is drawn from."),
    click.option(
        "--limit",
        "limits",
        multiple=True,
        metavar="KIND:NAME=N",
        help="At most N rollouts at a time that use a sandbox:NAME, provider:NAME or agent:NAME; repeatable.",
    ),
    click.option(
        "--keep-state",
        type=click.Choice(["none", "failed", "all"]),
        default="none",
        show_default=True,
        help="Keep the box's files as the agent left them.",
    ),
    click.option(
        "--keep-on-failure", is_flag=True, help="Keep the files of what did not pass, and say how to look into them."
    ),
    click.option("--detach", is_flag=True, help="Run in the background; bench eval attach shows it."),
)


def take_scheduling(given: dict[str, Any]) -> None:
    """Turn the shapes of a command line into the fields of `EvaluationConfig`, in place. Takes `detach` out too."""
    given.pop("detach", None)
    if given.pop("keep_on_failure", False) and given.get("keep_state") == "none":
        given["keep_state"] = "failed"
    limits = {}
    for pair in given.pop("limits", ()):
        name, separator, number = pair.rpartition("=")
        if not separator or not number.isdigit() or ":" not in name:
            raise UsageError(f"--limit '{pair}': expected KIND:NAME=N, such as provider:openai=8.")
        limits[name] = int(number)
    given["limits"] = limits
