"""A user in Python: says little at first, then what still fails, and stops when the tests pass.

    python examples/use-cases/progressive_disclosure.py

The scripted agent stands in for a real one.
"""

import asyncio
from pathlib import Path

import benchflow as bf

TASK = Path(__file__).parents[1] / "tasks" / "hello-file"
WORK = """
turns:
  - - run: echo "Hello, name!" > /app/hello.txt
  - match: "name.txt"
    steps:
      - run: echo "Hello, $(cat /app/name.txt)!" > /app/hello.txt
"""


class Impatient(bf.BaseUser):
    """Knows the solution, and gives away the file it reads."""

    async def setup(self, instruction: str, solution: str | None = None) -> None:
        self.hint = "name.txt" if solution and "name.txt" in solution else "the task"

    async def run(self, round: int, instruction: str, round_result: bf.RoundResult | None = None) -> str | None:
        if round_result is None:
            return "Write a greeting to /app/hello.txt."
        if round_result.rewards == {"reward": 1.0}:
            return None
        return f"Not yet, after {round_result.n_tool_calls} tool calls. Look at {self.hint}."


config = bf.RolloutConfig(
    TASK,
    agent="scripted",
    agent_options={"script": WORK},
    user=Impatient(),
    max_user_rounds=4,
    oracle_access=True,
    environment="local",
)


async def main() -> None:
    result = await bf.run(config)
    print(f"Reward: {result.rewards} after {result.n_prompts} prompts")


if __name__ == "__main__":
    asyncio.run(main())
