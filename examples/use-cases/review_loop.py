"""A coder, a reviewer that can read everything and change nothing, and a revision.

    python examples/use-cases/review_loop.py

The scripted agent stands in for real ones: put e.g. Role("coder", "claude-agent-acp", "claude-sonnet-4-6") instead.
"""

import asyncio
from pathlib import Path

import benchflow as bf
from benchflow.trial import Role, Scene, TrialConfig, Turn

TASK = Path(__file__).parents[1] / "tasks" / "hello-file"
CODE = """
turns:
  - - run: echo "Hello, name!" > /app/hello.txt
  - match: "name.txt"
    steps:
      - run: echo "Hello, $(cat /app/name.txt)!" > /app/hello.txt
"""
REVIEW = """
- run: echo spoilt > /app/hello.txt || true
- run: |
    echo '{"to": "coder", "content": "Use the name from name.txt."}' > /app/.outbox/coder.json
"""

config = TrialConfig(
    task_path=TASK,
    scenes=[
        Scene(
            name="review-loop",
            roles=[
                Role("coder", "scripted", options={"script": CODE}),
                Role("reviewer", "scripted", read_only=True, options={"script": REVIEW}),
            ],
            turns=[
                Turn("coder"),
                Turn("reviewer", 'Review /app/. Write {"to": "coder", "content": "..."} to /app/.outbox/coder.json.'),
                Turn("coder", "Read the reviewer's feedback and revise your solution."),
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
