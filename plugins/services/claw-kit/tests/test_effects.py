"""A method counts only if a test of the official client names another method that shows its effect."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from benchflow_claw_kit.effects import CallLog, missed, pairs
from benchflow_claw_kit.testing import running
from slack_sdk import WebClient
from slack_sdk.errors import SlackApiError

sys.path.insert(0, str(Path(__file__).parents[1] / "scripts"))
import tables


@pytest.mark.parametrize("service", tables.PAGES)
def test_every_method_that_answers_is_seen_through_another(service):
    answering, shown = tables.answering(service), set(tables.shown(service))
    assert sorted(answering - shown) == [], "no test has a @shows line for these"
    assert sorted(shown - answering) == [], "these do not answer"


def test_what_slack_refuses_with_status_200_counts_as_refused(tmp_path):
    with running("benchflow_service_claw_slack.cli", tmp_path / "slack.db", seed=("office", 1)) as server:
        calls, client = CallLog(server.db, ""), WebClient("xoxp-me", base_url=f"{server.url}/api/")
        with pytest.raises(SlackApiError):
            client.conversations_archive(channel="C0NOSUCH")
        client.conversations_list()
        assert calls.since() == [("conversations.archive", 400), ("conversations.list", 200)]
        assert missed(("conversations.archive > conversations.list",), calls.since()) != []
        assert "channel_not_found" in [row["refused"] for row in server.admin("GET", "calls")["calls"]]


def test_a_claim_that_did_not_happen_is_told():
    calls = [("labels.get", 200), ("labels.create", 200), ("labels.create", 400), ("labels.list", 404)]
    assert missed(("labels.create > labels.list",), calls) == []
    assert missed(("labels.create > labels.get",), calls) == ["labels.create > labels.get"]
    assert missed(("labels.list > labels.get",), calls) == ["labels.list > labels.get"]
    assert missed(("labels.create > state",), calls) == []
    batch = [("documents.batchUpdate", 200), ("#insertText", 200), ("documents.get", 200)]
    assert missed(("#insertText #insertTable > documents.get",), batch) == ["#insertTable > documents.get"]
    with pytest.raises(ValueError, match="write it as"):
        list(pairs("labels.create"))
