"""Two models in one scene: a small one codes, a large one reviews.

    python examples/use-cases/cross_model_review.py

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
- run: |
    echo '{"to": "coder", "content": "{{model}} says: use the name from name.txt."}' > /app/.outbox/coder.json
"""

config = TrialConfig(
    task_path=TASK,
    scenes=[
        Scene(
            name="cross-model-review",
            roles=[
                Role("coder", "scripted", "small-model", options={"script": CODE}),
                Role("reviewer", "scripted", "large-model", options={"script": REVIEW}),
            ],
            turns=[
                Turn("coder"),
                Turn("reviewer", 'Review /app/. Write {"to": "coder", "content": "..."} to /app/.outbox/coder.json.'),
                Turn("coder", "Address the reviewer's feedback."),
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
