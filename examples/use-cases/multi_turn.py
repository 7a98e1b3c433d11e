"""One agent, one session, three prompts.

    python examples/use-cases/multi_turn.py

The scripted agent stands in for real ones: put e.g. Role("coder", "claude-agent-acp", "claude-sonnet-4-6") instead.
"""

import asyncio
from pathlib import Path

import benchflow as bf
from benchflow.trial import Role, Scene, TrialConfig, Turn

TASK = Path(__file__).parents[1] / "tasks" / "hello-file"
SOLVE = """
turns:
  - - run: echo "Hello, $(cat /app/name.txt)" > /app/hello.txt
  - - run: echo "Hello, $(cat /app/name.txt)!" > /app/hello.txt
  - - run: cat /app/hello.txt
"""

config = TrialConfig(
    task_path=TASK,
    scenes=[
        Scene(
            name="iterative-solve",
            roles=[Role("solver", "scripted", options={"script": SOLVE})],
            turns=[
                Turn("solver"),  # instruction.md
                Turn("solver", "Review your solution. Run tests. Fix issues."),
                Turn("solver", "Final check: verify every requirement is met."),
            ],
        ),
    ],
    environment="local",
)


async def main() -> None:
    result = await bf.run(config)
    print(f"Reward: {result.rewards} after {result.n_prompts} prompts")


if __name__ == "__main__":
    asyncio.run(main())
