"""Tasksets, tools and loops of Verifiers, by the real packages in processes of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

TASKSETS = Path(__file__).with_name("tasksets")
pytestmark = [pytest.mark.usefixtures("installed"), pytest.mark.timeout(900)]
CLIENT = """[{run: "cat > /tmp/c.py <<'E'\\nimport json, sys, urllib.request as u\\ndef ask(method, **params):\\n  body = \
json.dumps(dict(jsonrpc='2.0', id=1, method=method, params=params)).encode()\\n  head = {'Content-Type': \
'application/json', 'Accept': 'application/json, text/event-stream'}\\n  print(u.urlopen(u.Request(sys.argv[1], body, \
head), timeout=300).read().decode())\\nask('tools/list')\\nfor item in sys.argv[3:]: ask('tools/call', \
name=sys.argv[2], arguments=dict(item=item))\\nE\\npython3 /tmp/c.py http://127.0.0.1:8450/%s"}, {say: "%s"}]"""


def test_tools_state_and_stop_conditions_are_theirs(bench):
    """The agent buys over MCP; the state is the tool server's; after two things the environment stops it."""
    played = bench(f"primeintellect/{TASKSETS / 'shop.py'}", CLIENT % ("shop buy milk tea bread", "Done."))
    assert played.code == 0, played.said
    rewards = {number: result["rewards"] for number, result in played.results.items()}
    assert rewards == {0: {"reward": 1.0, "calls": 1.0}, 1: {"reward": 0.0, "calls": 1.0}}
    assert played.results[0]["loop"]["stop_condition"] == "enough"


def test_hooks_work_in_the_box_and_what_fails_is_named(bench):
    command = '[{run: "tr a-z A-Z < in/word.txt > out.txt"}]'
    played = bench(f"primeintellect/{TASKSETS / 'files.py'}", command)
    assert played.code == 1, played.said
    assert played.results[0]["rewards"] == {"reward": 1.0, "size": 6.0}
    assert "could not begin: TaskError: task setup: RuntimeError: the paper is gone" in played.said
    assert (
        "the environment failed: TaskError: task FileTask scoring: RuntimeError: the scales are broken" in played.said
    )
    assert played.results[1]["error_info"]["kind"] == "task" and played.results[2]["rewards"] is None


def test_the_older_generation_with_tools(bench):
    """Their loop runs the tool, counts the turns and weighs both rewards."""
    played = bench(f"primeintellect/{TASKSETS / 'older_shop.py'}?verifiers=0.3", CLIENT % ("tools price xx", "2 coins"))
    assert played.code == 0, played.said
    rewards = {number: result["rewards"]["reward"] for number, result in played.results.items()}
    assert rewards == {0: 0.5, 1: 1.5}
    assert played.results[1]["rewards"]["price_calls"] == 1.0
