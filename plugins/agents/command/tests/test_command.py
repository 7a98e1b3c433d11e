"""`cmd:…`: any ACP program by its command line."""

from __future__ import annotations

import pytest
from benchflow_agent_command.command_line import command_agent

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
