"""A coder that asks an independent reviewer by an MCP tool.

    python examples/use-cases/mcp_review.py

The reviewer reads a copy of the files and can write nowhere; it is a model, whose key (OPENAI_API_KEY) it takes from
the environment. The scripted agent stands in for a real one: put e.g. Role("coder", "claude-agent-acp", MODEL) instead.
"""

import asyncio
from pathlib import Path

import benchflow as bf
from benchflow.trial import Role, Scene, TrialConfig, Turn

HERE = Path(__file__).parent
SCRIPT = str(HERE / "scripts" / "ask-reviewer.yaml")

config = TrialConfig(
    task_path=HERE.parent / "tasks" / "hello-file",
    scenes=[
        Scene(
            name="solve-and-review",
            roles=[Role("coder", "scripted", options={"script": SCRIPT})],
            turns=[
                Turn("coder"),
                Turn("coder", "Call the review_code MCP tool to get feedback, then fix issues."),
            ],
        ),
    ],
    services=["benchflow-reviewer:8100?model=openai/gpt-5-mini"],
    environment="local",
)


async def main() -> None:
    result = await bf.run(config)
    print(f"Reward: {result.rewards} after {result.n_prompts} prompts")


if __name__ == "__main__":
    asyncio.run(main())
