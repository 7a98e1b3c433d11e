"""One agent writes down how to do it; another, which knows nothing of the first, does it.

    python examples/use-cases/skill_generation.py

The scripted agent stands in for real ones: put e.g. Role("coder", "claude-agent-acp", "claude-sonnet-4-6") instead.
"""

import asyncio
from pathlib import Path

import benchflow as bf
from benchflow.trial import Role, Scene, TrialConfig, Turn

TASK = Path(__file__).parents[1] / "tasks" / "hello-file"
WRITE_SKILL = """
- run: echo "Read name.txt, then write one line to hello.txt." > /app/generated-skill.md
"""
SOLVE = """
- run: test -s /app/generated-skill.md && echo "Hello, $(cat /app/name.txt)!" > /app/hello.txt
"""

config = TrialConfig(
    task_path=TASK,
    scenes=[
        Scene(
            name="skill-gen",
            roles=[Role("gen", "scripted", options={"script": WRITE_SKILL})],
            turns=[Turn("gen", "Analyze the task and write a skill to /app/generated-skill.md")],
        ),
        Scene(
            name="solve",
            roles=[Role("solver", "scripted", options={"script": SOLVE})],
            turns=[Turn("solver")],  # None prompt = use instruction.md
        ),
    ],
    environment="local",
)


async def main() -> None:
    result = await bf.run(config)
    print(f"Reward: {result.rewards} after {result.n_prompts} prompts")


if __name__ == "__main__":
    asyncio.run(main())
