"""`bench eval branch`: several continuations of one rollout."""

from __future__ import annotations

from pathlib import Path

import click

from benchflow_core.cli.ui import Ui, printable

__all__ = ["branch"]


@click.command("branch")
@click.argument("rollout", type=click.Path(exists=True, file_okay=False))
@click.option("-n", "count", type=click.IntRange(1), default=2, show_default=True, help="Continuations.")
@click.option(
    "--prompt", "prompts", multiple=True, metavar="TEXT", help="What each is told; repeatable. Default: the task."
)
@click.option("-a", "--agent", metavar="NAME", help="Another agent than the rollout's.")
@click.option("-m", "--model", metavar="NAME", help="Another model.")
@click.option("-c", "--concurrency", type=click.IntRange(1), default=1, show_default=True, help="At a time.")
@click.pass_obj
@click.pass_context
def branch(
    ctx: click.Context,
    ui: Ui,
    rollout: str,
    count: int,
    prompts: tuple[str, ...],
    agent: str | None,
    model: str | None,
    concurrency: int,
) -> None:
    """Go on from the state that a rollout left, several times.

    Each continuation has its own box, world, agent session and reward, below the rollout's branches/. The value of the
    state is the mean of their rewards. Needs a rollout that was run with --keep-state. Exit code 1: one is unscored.
    """
    from benchflow_core.cli.running import run_async
    from benchflow_core.evaluation.branching import branch_again

    work = branch_again(Path(rollout), count, prompts=prompts, agent=agent, model=model, concurrency=concurrency)
    found = run_async(work)

    def text() -> None:
        for child in found.children:
            said = (
                f"reward {child.reward:g}"
                if child.reward is not None
                else f"unscored: {child.error or child.verifier_error}"
            )
            ui.out(f"{child.rollout_name}: {printable(said)}")
        value = "no value" if found.value is None else f"value {found.value:g}"
        ui.out(f"{value}, the mean of {sum(r is not None for r in found.rewards)} of {len(found.children)}")

    ui.emit(found.to_json(), text)
    if any(reward is None for reward in found.rewards):
        ctx.exit(1)
