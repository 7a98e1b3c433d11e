"""Starts OpenHands' ACP server in the box. Two things that its settings cannot say are said here.

The first argument is the wire of the rollout's endpoint: OpenHands picks one by the look of a model's name. And it
clones a repository of public skills for each session: what an agent knows would change with the day and the network.
"""

import asyncio
import sys

from openhands.sdk import LLM
from openhands.sdk.skills import skill
from openhands_cli.acp_impl.agent import run_acp_server

WIRE = sys.argv[1]

skill.load_public_skills = lambda *_, **__: []
LLM.uses_responses_api = lambda self: WIRE == "responses"

asyncio.run(run_acp_server())
