"""A name that no plugin has is opened by the agent that it is meant for."""

from __future__ import annotations

import pytest

from benchflow_core.errors import PluginError
from benchflow_core.plugins import registry
from benchflow_core.rollout.choose import find_agent


def test_a_command_line_and_a_file_are_opened_under_the_name_they_were_given(tmp_path):
    path = tmp_path / "agent.toml"
    path.write_text('name = "a"\nversion = "7"\nlaunch = ["x"]\n')
    command, file = find_agent("cmd:my-agent --acp", registry()), find_agent(str(path), registry())
    assert (command.name, command.distribution) == ("cmd:my-agent --acp", "benchflow-agent-command")
    assert command.spec.summary == "ACP command: my-agent --acp"
    assert (file.name, file.spec.version) == (str(path), "7")


def test_what_nobody_opens_is_refused_with_the_package_that_opens_most():
    with pytest.raises(PluginError, match=r"No installed agent is called 'my\.agent', or opens it") as error:
        find_agent("my.agent", registry())
    assert "pip install benchflow-agent-command" in error.value.remedy
    with pytest.raises(PluginError, match="Unknown agent 'my-agent'"):
        find_agent("my-agent", registry())
