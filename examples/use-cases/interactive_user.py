"""A user who knows the solution helps an assistant, hint by hint.

    python examples/use-cases/interactive_user.py

The scripted agent stands in for real ones: put e.g. Role("coder", "claude-agent-acp", "claude-sonnet-4-6") instead.
"""

import asyncio
from pathlib import Path

import benchflow as bf
from benchflow.trial import Role, Scene, TrialConfig, Turn

TASK = Path(__file__).parents[1] / "tasks" / "hello-file"
HINTS = """
turns:
  - - run: |
        echo '{"to": "assistant", "content": "Greet the person in name.txt."}' > /app/.outbox/assistant.json
  - - run: |
        diff /app/hello.txt /app/name.txt || grep -q hello.txt /solution/solve.sh
        echo '{"to": "assistant", "content": "It ends with an exclamation mark."}' > /app/.outbox/assistant.json
"""
WORK = """
turns:
  - - run: echo "Hello, $(cat /app/name.txt)" > /app/hello.txt
  - match: "exclamation mark"
    steps:
      - run: echo "Hello, $(cat /app/name.txt)!" > /app/hello.txt
"""

config = TrialConfig(
    task_path=TASK,
    scenes=[
        Scene(
            name="interactive-assist",
            roles=[
                Role("user", "scripted", options={"script": HINTS}),
                Role("assistant", "scripted", options={"script": WORK}),
            ],
            turns=[
                Turn(
                    "user", "You are simulating a user. Read /app/instruction.md and say what you want, no details yet."
                ),
                Turn("assistant"),  # None = use instruction.md
                Turn("user", "Check the assistant's work against /solution/ and give one hint."),
                Turn("assistant", "The user provided additional guidance. Read it and continue."),
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
