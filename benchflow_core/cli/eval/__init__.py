"""`bench eval`: run evaluations and look at them. One module per command, imported when it is typed."""

from __future__ import annotations

from typing import Final

import click

from benchflow_core.cli.from_plugins import PluginGroup
from benchflow_core.cli.lazy import Lazy

__all__ = ["eval_group"]

_HERE: Final = "benchflow_core.cli.eval"

TABLE: Final[dict[str, Lazy]] = {
    "create": (f"{_HERE}.create:create", "Run one task or a folder of them, and score the agent."),
    "run": (f"{_HERE}.create:create", "The same as create."),
    "list": ("benchflow-command-results", "Jobs below a folder."),
    "show": ("benchflow-command-results", "What a job or a rollout says."),
    "metrics": ("benchflow-command-results", "Aggregate every finished rollout below a folder."),
    "compare": ("benchflow-command-results", "Compare jobs or arms, paired by task."),
    "score": (f"{_HERE}.score:score", "Verify finished rollouts again, without the agent."),
    "settle": ("benchflow-command-results", "Say which score of a contested rollout counts."),
    "branch": (f"{_HERE}.branch:branch", "Go on several times from the state a rollout left."),
    "export": ("benchflow-command-results", "Pack a job for a colleague, or write it in another format."),
    "import": ("benchflow-command-results", "Unpack a job that was exported as a bundle."),
    "resume": (f"{_HERE}.resume:resume", "Run what a job has not finished."),
    "retry": (f"{_HERE}.resume:retry", "Run once more what a job could not score."),
    "extend": (f"{_HERE}.resume:extend", "Add trials to a job."),
    "attach": (f"{_HERE}.attach:attach", "Watch a job that runs in the background."),
    "stop": (f"{_HERE}.stop:stop", "Stop a job that runs in the background."),
    "shell": ("benchflow-command-authoring", "Look into the files that a rollout left."),
    "reproduce": (f"{_HERE}.reproduce:reproduce", "Repeat a rollout from its lock.json alone."),
}


_SKILLS: Final = "skills-dir"
HIDDEN: Final[dict[str, Lazy]] = {
    _SKILLS: ("benchflow-feature-standard", "The same as skills eval."),
}
_ONE_ARM: Final = ("--skill-mode", "--matrix", "--dry-run", "--detach", "--fail-under", "-h", "--help")
"""Of create alone: with one of these, the older spelling is of that command."""


def _older(args: list[str]) -> str:
    """`eval … --skills-dir DIR` evaluates skills, with them and without; without it, it is `create`."""
    words = {word.partition("=")[0] for word in args}
    return _SKILLS if "--skills-dir" in words and not words.intersection(_ONE_ARM) else "create"


class EvalGroup(PluginGroup):
    """`benchflow eval -t …`, without a command, is an older spelling."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        own = {spelling for param in self.get_params(ctx) for spelling in param.opts}
        if args and args[0].startswith("-") and args[0] not in own:
            args = [_older(args), *args]
        return super().parse_args(ctx, args)


@click.group("eval", cls=EvalGroup, table=TABLE, hidden=HIDDEN)
def eval_group() -> None:
    """Run evaluations and look at their results."""
