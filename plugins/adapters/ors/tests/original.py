"""The same play through the package's own client: `python original.py openreward|ors URL`, a JSON object of rewards.

Three players: `reference` says the word, `nop` does nothing, `half` guesses one letter and gives up.
"""

import asyncio
import json
import sys
import time

DIALECT, URL = sys.argv[1:]


def client():
    if DIALECT == "openreward":
        from openreward import AsyncOpenReward

        return AsyncOpenReward(api_key="")
    from ors.client import AsyncORS

    return AsyncORS(base_url=URL)


async def play(environment, task, player):
    rewards = []
    async with environment.session(task=task) as session:
        await session.get_prompt()
        await session.list_tools()
        word = task.task_spec["word"]
        call = {"reference": ("answer", {"word": word}), "half": ("guess", {"letter": word[0]}), "nop": None}[player]
        if call:
            output = await session.call_tool(*call)
            rewards += [output.reward] if output.reward is not None else []
    return rewards[-1] if rewards else 0.0


async def main():
    found = {}
    api = client()
    if DIALECT == "openreward":
        environment = api.environments.get("words", base_url=URL, variant="words")
    else:
        environment = api.environment("words")
    tasks = await environment.list_tasks("test")
    for player in ("reference", "nop", "half"):
        began = time.monotonic()
        found[player] = [await play(environment, task, player) for task in tasks]
        found[f"{player} seconds"] = (time.monotonic() - began) / len(tasks)
    print(json.dumps(found))
    sys.stdout.flush()


asyncio.run(main())
