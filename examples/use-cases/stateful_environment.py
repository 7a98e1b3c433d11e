"""The stateful environment in Python: python examples/use-cases/stateful_environment.py [AGENT [MODEL]]

Services are named, and run in a box of their own beside the agent's; the agent reaches them at their ports.
"""

import asyncio
import sys
from pathlib import Path

import benchflow as bf
from benchflow import SERVICES, build_service_hooks
from benchflow.trial import Scene, TrialConfig


async def main(agent: str = "oracle", model: str | None = None) -> None:
    services = [SERVICES["gmail"], SERVICES["gcal"], SERVICES["slack"]]
    config = TrialConfig(
        task_path=Path("benchmarks/clawsbench/tasks/meeting-from-email"),
        scenes=[Scene.single(agent=agent, model=model)],
        environment="local",
        pre_agent_hooks=build_service_hooks(services),
    )
    result = await bf.run(config)
    print(result.rewards, result.world["services"], result.world["env_hash"])


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
