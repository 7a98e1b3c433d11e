"""The documentation of the scripted agent: every example runs and ends as it says, every step has one."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from benchflow_agent_scripted.shapes import STEPS

from benchflow_core.errors import BenchflowError

ROOT = Path(__file__).parents[4]
PAGES = [ROOT / "docs/agents/scripted.md", ROOT / "plugins/agents/scripted/README.md"]
EXAMPLES = [
    pytest.param(block, id=f"{page.name}-{number}")
    for page in PAGES
    for number, block in enumerate(re.findall(r"```yaml\n(.*?)```", page.read_text(), re.DOTALL), 1)
]


@pytest.mark.parametrize("example", EXAMPLES)
async def test_the_example_ends_as_it_says(bench: Any, example: str) -> None:
    first, _, script = example.partition("\n")
    expected = first.removeprefix("# ends: ")
    assert expected != first, f"an example begins with '# ends: …', not {first!r}"
    try:
        session = await bench.scripted(script, idle_timeout=1.5, cancel_grace=0.2)
        ended = (await session.prompt("Make a file, it's urgent.")).stop_reason
    except BenchflowError as error:
        ended = type(error).__name__
    assert ended == expected


def test_every_step_has_an_example() -> None:
    examples = "\n".join(re.findall(r"```yaml\n(.*?)```", PAGES[0].read_text(), re.DOTALL))
    missing = [step for step in STEPS if not re.search(rf"- {step}\b", examples)]
    assert not missing


def test_the_readme_names_every_step() -> None:
    assert not [step for step in STEPS if f"`{step}`" not in PAGES[1].read_text()]
