"""Calls made by chance: whatever they are, the answer is never the service's own fault."""

from __future__ import annotations

import json
import re
from pathlib import Path
from random import Random
from urllib.parse import urlencode

import benchflow_service_claw_slack
import pytest
from benchflow_claw_kit import Store
from benchflow_claw_kit.dispatch import Dispatcher
from benchflow_claw_kit.fuzzing import ODD, WORDS
from benchflow_claw_kit.http import Request
from benchflow_claw_kit.seeding import seed
from benchflow_service_claw_slack.methods import METHODS
from benchflow_service_claw_slack.service import SERVICE

READ = re.compile(r'call\.\w+\(\s*"(\w+)"')
ARGUMENTS = sorted(
    {
        name
        for path in Path(benchflow_service_claw_slack.__file__).parent.rglob("*.py")
        for name in READ.findall(path.read_text())
    }
)
USUAL = ("channel", "user", "users", "ts", "timestamp", "text", "file", "name", "id", "usergroup", "title", "item")
IDS = {
    "channels": "id",
    "users": "id",
    "messages": "ts",
    "files": "id",
    "usergroups": "id",
    "lists": "id",
    "canvases": "id",
}
JSON = (
    '[{"type":"section","text":{"type":"mrkdwn","text":"x"}}]',
    '{"type":"modal","title":{"type":"plain_text","text":"x"},"blocks":[]}',
    '["\\ud800"]',
    "[[",
    '[{"a":1}]',
    "eyes",
    "1772442000",
)


def some_call(random: Random, known: list[str]) -> Request:
    names = [*random.sample(ARGUMENTS, 25), *USUAL]
    arguments = {
        name: random.choice(
            [random.choice(known)] * 4 + [random.choice(WORDS), random.choice(ODD), random.choice(JSON)]
        )
        for name in names
        if random.random() < 0.6
    }
    headers = {"authorization": f"Bearer {random.choice(['xoxp-a', 'xoxp-a', 'xoxb-a', 'bad'])}"}
    path = f"/api/{random.choice(sorted(METHODS))}"
    if random.random() < 0.5:
        return Request("POST", path, {}, headers | {"content-type": "application/json"}, json.dumps(arguments).encode())
    shown = {name: value if isinstance(value, str) else json.dumps(value) for name, value in arguments.items()}
    body = urlencode(shown, errors="replace").encode()
    return Request("POST", path, {}, headers | {"content-type": "application/x-www-form-urlencoded"}, body)


@pytest.mark.parametrize("number", range(2))
def test_no_call_breaks_it(tmp_path, number):
    store, random, good = Store(tmp_path / "s.db", SERVICE.schema), Random(number), set()
    seed(SERVICE, store, "office", 1)
    dispatcher = Dispatcher(SERVICE, store)
    for turn in range(700):
        if turn % 50 == 0:
            rows = [store.all(f"SELECT {key} AS id FROM {table} LIMIT 10") for table, key in IDS.items()]
            known = [str(row["id"]) for some in rows for row in some]
        request = some_call(random, known)
        response = dispatcher(request)
        assert response.status < 500, (request, response.body)
        if json.loads(response.body)["ok"]:
            good.add(request.path)
    assert len(good) > 15, good


def test_half_a_surrogate_pair_is_no_character(server, me, channel):
    """JSON can spell it, nothing can store it."""
    body = json.dumps({"channel": channel, "text": "a\ud800b"})
    assert me.api_call("chat.postMessage", json=json.loads(body))["ok"]
    assert me.conversations_history(channel=channel)["messages"][0]["text"] == "a\ufffdb"
    with pytest.raises(Exception, match="not_found"):
        me.api_call("reminders.complete", json={"reminder": "\ud800"})
