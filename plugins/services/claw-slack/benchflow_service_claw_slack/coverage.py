"""The part of docs/services/slack.md that is made: every method the official client knows."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from benchflow_service_claw_slack.methods import METHODS

__all__ = ["UNSEEN", "answered", "table"]

_NOTES = {
    "admin.": "no: Enterprise administration",
    "agents.": "no: Slack's own agents",
    "apps.": "no: app management",
    "assistant.": "no: the assistant's panel beside a conversation, which no method shows",
    "conversations.acceptSharedInvite": "no: Slack Connect, there is one workspace",
    "conversations.approveSharedInvite": "no: Slack Connect, there is one workspace",
    "conversations.declineSharedInvite": "no: Slack Connect, there is one workspace",
    "conversations.externalInvitePermissions": "no: Slack Connect, there is one workspace",
    "conversations.inviteShared": "no: Slack Connect, there is one workspace",
    "conversations.listConnectInvites": "no: Slack Connect, there is one workspace",
    "conversations.requestSharedInvite": "no: Slack Connect, there is one workspace",
    "team.externalTeams": "no: Slack Connect, there is one workspace",
    "users.discoverableContacts": "no: Slack Connect, there is one workspace",
    "dialog.open": "no: replaced by views, a trigger comes from a person's click",
    "entity.": "no: an answer to a person's click",
    "files.comments.": "no: comments on files are messages of a thread",
    "functions.": "no: steps of workflows",
    "migration.": "no: ids of merged organizations",
    "oauth.": "no: tokens are given",
    "openid.": "no: tokens are given",
    "rtm.": "no: no socket is served",
    "slackbot.": "no: Slack's own agents",
    "team.accessLogs": "no: logins are not kept",
    "team.integrationLogs": "no: installations are not kept",
    "tooling.": "no: tokens are given",
    "workflows.": "no: there is no workflow builder",
    "views.open": "refused with `invalid_trigger_id`: a trigger comes from a person's click",
    "views.push": "refused with `invalid_trigger_id`: a trigger comes from a person's click",
    "files.upload": "no: `method_deprecated`, use `files_upload_v2`",
    "channels.": "no: `method_deprecated`, use conversations.*",
    "groups.": "no: `method_deprecated`, use conversations.*",
    "im.": "no: `method_deprecated`, use conversations.*",
    "mpim.": "no: `method_deprecated`, use conversations.*",
}
UNSEEN = {
    "api.test": "nothing: it answers what it was asked",
    "blocks.validate": "nothing: it only says whether blocks are well made",
    "emoji.list": "the scenario: only administrators of an organization add emoji",
    "team.profile.get": "the scenario: the fields of a profile are set by hand",
    "team.preferences.list": "nothing: the same for every world",
    "team.billing.info": "nothing: the same for every world",
}
"""Methods that answer and whose effect no other method shows."""
_REFUSED = {"views.open", "views.push"}


def sdk_methods() -> list[str]:
    """What the official client calls, read from its source."""
    spec = find_spec("slack_sdk.web.client")
    assert spec is not None and spec.origin is not None
    found = re.findall(r'self\.api_call\(\s*(?:#[^\n]*\n\s*)*"([\w.]+)"', Path(spec.origin).read_text())
    return sorted(set(found), key=str.lower)


def answered() -> set[str]:
    return METHODS.keys() - _REFUSED


def table(seen: Mapping[str, str]) -> str:
    known = sorted({*sdk_methods(), *answered()}, key=str.lower)
    rows = ["| method | answers | seen by |", "|---|---|---|"]
    for name in known:
        why = next((note for start, note in _NOTES.items() if name == start or name.startswith(start)), "no")
        rows.append(f"| `{name}` | {'yes' if name in answered() else why} | {seen.get(name, '')} |")
    ordinary = [name for name in known if not name.startswith("admin.")]
    count = (
        f"{sum(n in answered() for n in known)} of {len(known)} methods answer ({len(ordinary)} without admin.*).\n\n"
    )
    return "From the methods that slack_sdk calls: " + count + "\n".join(rows)
