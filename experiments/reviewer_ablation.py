"""Does an independent reviewer help, and does it help more when it reads the task again?

    python experiments/reviewer_ablation.py --tasks-dir .ref/terminal-bench-2 --sandbox daytona --concurrency 64

Three conditions of one job, paired by task:

    baseline        one agent, one turn
    reviewer        coder, plain reviewer, revision by the coder
    reviewer+spec   coder, reviewer that reads the instruction again, revision by the coder

Prints the win rate of each condition and what it gains over the baseline, and where the rollouts are.
"""

from __future__ import annotations

import argparse
import asyncio
from pathlib import Path

import benchflow as bf
from benchflow import Role, Scene, Turn

MODEL = "gemini-3.1-flash-lite-preview"
TELL = 'Write: {"to": "coder", "content": "Your specific feedback here."} to .outbox/coder.json.'
ONLY = "Do NOT modify any other file."
PLAIN = (
    f"You are an expert code reviewer. Examine the coder's work. Write specific, actionable feedback. {ONLY}\n{TELL}"
)
SPEC = (
    "You are an expert code reviewer. Read the task in instruction.md again, then examine the coder's work. "
    f"Write specific, actionable feedback. {ONLY}\n{TELL}"
)
REVISE = "Read the reviewer's feedback and revise your solution."


def conditions(coder: Role, plain: Role, spec: Role) -> dict[str, list[Scene]]:
    """Return the scenes of each condition."""

    def reviewed(reviewer: Role, prompt: str) -> list[Scene]:
        turns = [Turn("coder"), Turn("reviewer", prompt), Turn("coder", REVISE)]
        return [Scene(name="review-loop", roles=[coder, reviewer], turns=turns)]

    return {
        "baseline": [Scene(name="solve", roles=[coder], turns=[Turn("coder")])],
        "reviewer": reviewed(plain, PLAIN),
        "reviewer+spec": reviewed(spec, SPEC),
    }


def options(given: list[str]) -> dict[str, str]:
    return dict(word.split("=", 1) for word in given)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks-dir", type=Path, required=True)
    parser.add_argument("--agent", default="gemini", help="the coder (gemini)")
    parser.add_argument("--model", default=MODEL, help=f"the coder's model ({MODEL}); '' for an agent without one")
    parser.add_argument("--reviewer-agent", help="the reviewer, if it is another than the coder")
    parser.add_argument("--reviewer-model", help="the reviewer's model, if it is another than the coder's")
    parser.add_argument("--sandbox", default="daytona")
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--trials", type=int, default=1)
    parser.add_argument("--jobs-dir", type=Path, default=Path("jobs"))
    for name in ("coder", "reviewer", "spec-reviewer"):
        parser.add_argument(f"--{name}-option", action="append", default=[], metavar="KEY=VALUE")
    return parser.parse_args()


def job_of(args: argparse.Namespace) -> bf.Evaluation:
    agent, model = args.reviewer_agent or args.agent, args.reviewer_model or args.model
    coder = Role("coder", args.agent, args.model or None, options=options(args.coder_option))
    plain = Role("reviewer", agent, model or None, read_only=True, options=options(args.reviewer_option))
    again = options(args.spec_reviewer_option or args.reviewer_option)
    spec = Role("reviewer", agent, model or None, read_only=True, options=again)
    config = bf.EvaluationConfig(
        sandbox=args.sandbox,
        concurrency=args.concurrency,
        trials=args.trials,
        matrix=bf.Matrix(scenes=conditions(coder, plain, spec)),
    )
    return bf.Evaluation(args.tasks_dir, args.jobs_dir, config)


async def main() -> None:
    job = job_of(arguments())
    await job.run()
    rows = bf.results(job.job_dir).rows
    gains = {one.other: one for one in bf.compare(job.job_dir)}
    print(f"{'condition':<16}{'won':>8}{'win rate':>10}{'over the baseline':>20}")
    for name in ("baseline", "reviewer", "reviewer+spec"):
        scored = [row["outcome"] == "passed" for row in rows if row["arm"] == name and row["reward"] is not None]
        rate = f"{sum(scored) / len(scored):.1%}" if scored else "-"
        gain = f"{100 * gains[name].difference:+.1f} points" if name in gains else ""
        print(f"{name:<16}{f'{sum(scored)}/{len(scored)}':>8}{rate:>10}{gain:>20}")
    print(f"\nbench eval compare {job.job_dir}")


if __name__ == "__main__":
    asyncio.run(main())
