"""One server per module; tests make channels of their own."""

from __future__ import annotations

from itertools import count

import pytest
from benchflow_claw_kit.effects import checked
from benchflow_claw_kit.testing import running
from slack_sdk import WebClient
from slack_sdk.errors import SlackApiError

effects_are_seen = checked("")
MODULE = "benchflow_service_claw_slack.cli"
_numbers = count(1)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with running(MODULE, tmp_path_factory.mktemp("slack") / "slack.db", seed=("office", 7)) as one:
        yield one


@pytest.fixture(scope="module")
def bot(server):
    """The official client with the app's token."""
    return WebClient("xoxb-a-bot", base_url=f"{server.url}/api/")


@pytest.fixture(scope="module")
def me(server):
    """The official client with a person's token: Alex, an administrator."""
    return WebClient("xoxp-a-person", base_url=f"{server.url}/api/")


@pytest.fixture(scope="module")
def people(me):
    return {one["name"]: one["id"] for one in me.users_list()["members"]}


@pytest.fixture
def channel(me, bot):
    """A new public channel with Alex and the bot in it."""
    made = me.conversations_create(name=f"test-{next(_numbers)}")["channel"]["id"]
    me.conversations_invite(channel=made, users=bot.auth_test()["user_id"])
    return made


@pytest.fixture
def refused():
    """The error of a call that must fail."""

    def call(function, **arguments):
        with pytest.raises(SlackApiError) as caught:
            function(**arguments)
        assert caught.value.response["ok"] is False
        return caught.value.response["error"]

    return call
