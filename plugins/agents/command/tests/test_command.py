"""`cmd:…`: any ACP program by its command line."""

from __future__ import annotations

from typing import Any

import pytest

from benchflow_core.acp import command_agent
from benchflow_core.contracts import AgentContext
from benchflow_core.errors import UsageError

CONTEXT = AgentContext(workdir="/app", home="/root", user="root", prefix=None, env={"A": "1"})


def test_the_command_is_split_like_a_shell_does_but_run_without_one() -> None:
    spec = command_agent("""my-agent --flag "two words" '$HOME' a\\ b""")
    assert spec.prepare is not None
    launch = spec.prepare(CONTEXT)
    assert launch.argv == ("my-agent", "--flag", "two words", "$HOME", "a b") and launch.env == {"A": "1"}
    assert spec.purpose == "normal" and not spec.layers


@pytest.mark.parametrize(
    ("command", "said"), [("", "is empty"), ("  ", "is empty"), ("agent 'x", "No closing quotation")]
)
def test_a_command_that_is_none(command: str, said: str) -> None:
    with pytest.raises(UsageError, match=said) as wrong:
        command_agent(command)
    assert wrong.value.exit_code == 2


async def test_it_is_driven_and_takes_a_model_where_it_offers_one(bench: Any) -> None:
    import shlex

    argv = bench.scripted_argv('- say: "{{model}}"')
    spec = command_agent(shlex.join(argv))
    assert spec.prepare is not None
    session = await bench.open(*spec.prepare(CONTEXT).argv, spec=spec, model="lab/m")
    await session.prompt("go")
    assert bench.text() == "lab/m"
