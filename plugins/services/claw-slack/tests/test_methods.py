"""Every method, through the official client; its effect is seen through another method."""

from __future__ import annotations

import time

import pytest
from benchflow_claw_kit.effects import shows

pytestmark = pytest.mark.xdist_group("claw-slack-methods")


def said(client, channel):
    return [one["text"] for one in client.conversations_history(channel=channel)["messages"] if "subtype" not in one]


def message(client, channel, ts):
    (one,) = client.conversations_history(channel=channel, latest=ts, oldest=ts, inclusive=True)["messages"]
    return one


@shows("auth.test > bots.info", "auth.teams.list > team.info", "users.identity > auth.test")
def test_who_am_i(bot, me):
    assert bot.auth_test()["user"] == "clawbot" and me.auth_test()["user"] == "alex"
    assert bot.bots_info(bot=bot.auth_test()["bot_id"])["bot"]["name"] == "Claw Bot"
    assert me.auth_teams_list()["teams"][0]["name"] == me.team_info()["team"]["name"] == "Larkspur"
    assert bot.api_test(foo="bar")["args"] == {"foo": "bar"}
    assert me.users_identity()["user"]["id"] == me.auth_test()["user_id"]
    assert "shipit" in bot.emoji_list()["emoji"] and me.team_profile_get()["ok"]


@shows(
    "chat.postMessage chat.update chat.delete chat.meMessage > conversations.history",
    "chat.postMessage > chat.getPermalink",
)
def test_messages_are_posted_changed_and_taken_back(bot, me, channel, refused):
    sent = bot.chat_postMessage(channel=channel, text="first")
    assert sent["message"]["bot_id"] == bot.auth_test()["bot_id"] and said(me, channel) == ["first"]
    changed = bot.chat_update(channel=channel, ts=sent["ts"], text="second")
    assert changed["text"] == "second" and "edited" in message(me, channel, sent["ts"])
    assert refused(me.chat_update, channel=channel, ts=sent["ts"], text="x") == "cant_update_message"
    link = me.chat_getPermalink(channel=channel, message_ts=sent["ts"])["permalink"]
    assert link.endswith(f"/archives/{channel}/p{sent['ts'].replace('.', '')}")
    bot.chat_delete(channel=channel, ts=sent["ts"])
    assert said(me, channel) == []
    assert refused(bot.chat_delete, channel=channel, ts=sent["ts"]) == "message_not_found"
    me.chat_meMessage(channel=channel, text="waves")
    assert me.conversations_history(channel=channel)["messages"][0]["subtype"] == "me_message"


@shows("chat.unfurl > conversations.history")
def test_blocks_and_attachments_are_kept(bot, me, channel):
    blocks = [{"type": "section", "text": {"type": "mrkdwn", "text": "*hi*"}}, {"type": "divider"}]
    sent = bot.chat_postMessage(channel=channel, text="hi", blocks=blocks, attachments=[{"text": "more"}])
    got = message(me, channel, sent["ts"])
    assert got["blocks"] == blocks and got["attachments"][0]["text"] == "more"
    bot.chat_unfurl(channel=channel, ts=sent["ts"], unfurls={"https://x.org": {"title": "X"}})
    assert message(me, channel, sent["ts"])["attachments"][0]["from_url"] == "https://x.org"


@shows("chat.postMessage chat.delete > conversations.replies")
def test_threads(bot, me, channel, refused):
    first = me.chat_postMessage(channel=channel, text="question")["ts"]
    one = bot.chat_postMessage(channel=channel, text="answer", thread_ts=first)
    me.chat_postMessage(channel=channel, text="thanks", thread_ts=one["ts"], reply_broadcast=True)
    got = me.conversations_replies(channel=channel, ts=first)["messages"]
    assert [m["text"] for m in got] == ["question", "answer", "thanks"]
    assert got[0]["reply_count"] == 2 and got[1]["parent_user_id"] == me.auth_test()["user_id"]
    history = me.conversations_history(channel=channel)["messages"]
    assert [m["text"] for m in history if m.get("subtype") in (None, "thread_broadcast")] == ["thanks", "question"]
    assert refused(me.chat_postMessage, channel=channel, text="x", thread_ts="1.000001") == "thread_not_found"
    me.chat_delete(channel=channel, ts=first)
    assert me.conversations_replies(channel=channel, ts=first)["messages"][0]["subtype"] == "tombstone"


@shows("chat.postEphemeral > state")
def test_ephemeral_messages_are_in_no_history(bot, me, channel, people, server, refused):
    sent = bot.chat_postEphemeral(channel=channel, user=people["alex"], text="only you")
    assert said(me, channel) == []
    rows = server.admin("GET", "state")["ephemeral_messages"]
    assert rows[f"{channel}/{sent['message_ts']}"]["text"] == "only you"
    assert refused(bot.chat_postEphemeral, channel=channel, user=people["grace"], text="x") == "user_not_in_channel"


@shows("chat.scheduleMessage chat.deleteScheduledMessage > chat.scheduledMessages.list")
def test_scheduled_messages(bot, me, channel, refused):
    later = int(time.time()) + 86400
    made = bot.chat_scheduleMessage(channel=channel, post_at=later, text="later")
    (listed,) = bot.chat_scheduledMessages_list(channel=channel)["scheduled_messages"]
    assert listed["id"] == made["scheduled_message_id"] and listed["text"] == "later"
    bot.chat_deleteScheduledMessage(channel=channel, scheduled_message_id=listed["id"])
    assert bot.chat_scheduledMessages_list(channel=channel)["scheduled_messages"] == []
    assert refused(bot.chat_scheduleMessage, channel=channel, post_at=5, text="x") == "time_in_past"
    assert refused(bot.chat_scheduleMessage, channel=channel, post_at=later + 10**8, text="x") == "time_too_far"
    soon = int(float(bot.chat_postMessage(channel=channel, text="now")["ts"])) + 3
    bot.chat_scheduleMessage(channel=channel, post_at=soon, text="soon")
    for number in range(4):
        me.chat_postMessage(channel=channel, text=str(number))
    assert "soon" in said(me, channel) and bot.chat_scheduledMessages_list(channel=channel)["scheduled_messages"] == []


@shows(
    "conversations.rename conversations.setTopic conversations.setPurpose conversations.unarchive > conversations.info",
    "conversations.archive > conversations.list",
)
def test_channels_are_made_renamed_described_archived(me, people, channel, refused):
    me.conversations_rename(channel=channel, name=f"renamed-{channel.lower()}")
    me.conversations_setTopic(channel=channel, topic="Topic")
    me.conversations_setPurpose(channel=channel, purpose="Purpose")
    info = me.conversations_info(channel=channel, include_num_members=True)["channel"]
    assert (info["name"], info["topic"]["value"], info["purpose"]["value"], info["num_members"]) == (
        f"renamed-{channel.lower()}", "Topic", "Purpose", 2,
    )  # fmt: skip
    assert info["previous_names"][0].startswith("test-")
    me.conversations_archive(channel=channel)
    assert channel not in [c["id"] for c in me.conversations_list(exclude_archived=True)["channels"]]
    assert refused(me.chat_postMessage, channel=channel, text="x") == "is_archived"
    assert refused(me.conversations_archive, channel=channel) == "already_archived"
    me.conversations_unarchive(channel=channel)
    assert me.conversations_info(channel=channel)["channel"]["is_archived"] is False
    assert refused(me.conversations_create, name="general") == "name_taken"
    assert refused(me.conversations_create, name="With Space") == "invalid_name_specials"
    assert refused(me.conversations_create, name="x" * 81) == "invalid_name_maxlength"


@shows(
    "conversations.invite conversations.kick > conversations.members",
    "conversations.leave conversations.join > conversations.history",
)
def test_people_come_and_go(me, bot, channel, people, refused):
    me.conversations_invite(channel=channel, users=f"{people['grace']},{people['dan']}")
    assert {people["grace"], people["dan"]} <= set(me.conversations_members(channel=channel)["members"])
    assert refused(me.conversations_invite, channel=channel, users=people["dan"]) == "already_in_channel"
    assert refused(me.conversations_invite, channel=channel, users="U000") == "user_not_found"
    me.conversations_kick(channel=channel, user=people["grace"])
    assert people["grace"] not in me.conversations_members(channel=channel)["members"]
    bot.conversations_leave(channel=channel)
    assert refused(bot.chat_postMessage, channel=channel, text="x") == "not_in_channel"
    assert refused(bot.conversations_history, channel=channel) == "not_in_channel"
    bot.conversations_join(channel=channel)
    assert bot.conversations_join(channel=channel)["warning"] == "already_in_channel"
    assert bot.chat_postMessage(channel=channel, text="back")["ok"]
    joined = [m for m in me.conversations_history(channel=channel)["messages"] if m.get("subtype") == "channel_join"]
    assert joined and refused(me.conversations_leave, channel=me_general(me)) == "cant_leave_general"


def me_general(client):
    return next(c["id"] for c in client.conversations_list()["channels"] if c["is_general"])


@shows("conversations.create > conversations.info")
def test_private_channels_are_for_members(me, bot, refused):
    made = me.conversations_create(name="secret-plans", is_private=True)["channel"]
    assert made["is_private"] and refused(bot.conversations_info, channel=made["id"]) == "channel_not_found"
    names = [c["name"] for c in bot.conversations_list(types="public_channel,private_channel")["channels"]]
    assert "secret-plans" not in names and "leads" not in names


@shows(
    "conversations.open conversations.mark > conversations.info",
    "conversations.close > conversations.list",
    "conversations.open > users.conversations",
)
def test_direct_messages_and_what_was_read(me, bot, people):
    opened = bot.conversations_open(users=people["alex"], return_im=True)["channel"]
    assert opened["user"] == people["alex"] and opened["is_im"]
    assert bot.conversations_open(users=people["alex"])["already_open"] is True
    sent = bot.chat_postMessage(channel=people["alex"], text="psst")
    assert sent["channel"] == opened["id"]
    before = me.conversations_info(channel=opened["id"])["channel"]
    assert before["unread_count"] == 1 and before["latest"]["text"] == "psst"
    me.conversations_mark(channel=opened["id"], ts=sent["ts"])
    assert me.conversations_info(channel=opened["id"])["channel"]["unread_count"] == 0
    me.conversations_close(channel=opened["id"])
    assert opened["id"] not in [c["id"] for c in me.conversations_list(types="im")["channels"]]
    group = me.conversations_open(users=[people["dan"], people["grace"]])["channel"]["id"]
    assert me.conversations_info(channel=group)["channel"]["is_mpim"] is True
    assert group in [c["id"] for c in me.users_conversations(types="mpim")["channels"]]


@shows("reactions.add > reactions.get", "reactions.add > reactions.list", "reactions.remove > conversations.history")
def test_reactions(me, bot, channel, refused):
    ts = me.chat_postMessage(channel=channel, text="ship it?")["ts"]
    bot.reactions_add(channel=channel, timestamp=ts, name="rocket")
    me.reactions_add(channel=channel, timestamp=ts, name=":rocket:")
    got = me.reactions_get(channel=channel, timestamp=ts)["message"]["reactions"]
    assert [(r["name"], r["count"]) for r in got] == [("rocket", 2)]
    assert ts in [item["message"]["ts"] for item in bot.reactions_list(user=bot.auth_test()["user_id"])["items"]]
    assert refused(bot.reactions_add, channel=channel, timestamp=ts, name="rocket") == "already_reacted"
    assert refused(bot.reactions_add, channel=channel, timestamp=ts, name="No Emoji!") == "invalid_name"
    bot.reactions_remove(channel=channel, timestamp=ts, name="rocket")
    assert message(me, channel, ts)["reactions"][0]["count"] == 1
    assert refused(bot.reactions_remove, channel=channel, timestamp=ts, name="rocket") == "no_reaction"


@shows(
    "pins.add pins.remove > pins.list",
    "bookmarks.add bookmarks.edit bookmarks.remove > bookmarks.list",
    "stars.add stars.remove > stars.list",
)
def test_pins_bookmarks_and_stars(me, channel, refused):
    ts = me.chat_postMessage(channel=channel, text="keep")["ts"]
    me.pins_add(channel=channel, timestamp=ts)
    assert me.pins_list(channel=channel)["items"][0]["message"]["text"] == "keep"
    assert refused(me.pins_add, channel=channel, timestamp=ts) == "already_pinned"
    me.pins_remove(channel=channel, timestamp=ts)
    assert (
        me.pins_list(channel=channel)["items"] == []
        and refused(me.pins_remove, channel=channel, timestamp=ts) == "no_pin"
    )
    mark = me.bookmarks_add(channel_id=channel, title="Docs", type="link", link="https://x.org")["bookmark"]["id"]
    me.bookmarks_edit(channel_id=channel, bookmark_id=mark, title="Manual")
    assert [b["title"] for b in me.bookmarks_list(channel_id=channel)["bookmarks"]] == ["Manual"]
    me.bookmarks_remove(channel_id=channel, bookmark_id=mark)
    assert me.bookmarks_list(channel_id=channel)["bookmarks"] == []
    assert refused(me.bookmarks_add, channel_id=channel, title="x", type="link", link="nope") == "invalid_link"
    me.stars_add(channel=channel, timestamp=ts)
    assert ts in [i["message"]["ts"] for i in me.stars_list()["items"] if i["type"] == "message"]
    me.stars_remove(channel=channel, timestamp=ts)
    assert ts not in str(me.stars_list()["items"])


@shows("reminders.add reminders.delete > reminders.info", "reminders.complete > reminders.list")
def test_reminders(me, people, refused):
    made = me.reminders_add(text="call Halden", time="in 20 minutes")["reminder"]
    assert me.reminders_info(reminder=made["id"])["reminder"]["text"] == "call Halden"
    me.reminders_complete(reminder=made["id"])
    (seen,) = [r for r in me.reminders_list()["reminders"] if r["id"] == made["id"]]
    assert seen["complete_ts"] > 0
    me.reminders_delete(reminder=made["id"])
    assert refused(me.reminders_info, reminder=made["id"]) == "not_found"
    assert refused(me.reminders_add, text="x", time="whenever") == "cannot_parse"
    assert me.reminders_add(text="x", time="every Thursday")["reminder"]["recurring"] is True


@shows(
    "users.profile.set > users.profile.get",
    "users.profile.set > users.info",
    "users.setPresence > users.getPresence",
    "users.info > users.lookupByEmail",
    "users.info > users.list",
)
def test_people_and_profiles(me, bot, people, refused):
    assert bot.users_info(user=people["grace"])["user"]["profile"]["title"] == "Designer"
    assert bot.users_lookupByEmail(email="PRIYA@larkspur.example")["user"]["id"] == people["priya"]
    assert refused(bot.users_lookupByEmail, email="nobody@x.org") == "users_not_found"
    assert refused(bot.users_info, user="U0") == "user_not_found"
    me.users_profile_set(profile={"status_text": "Lunch", "status_emoji": ":bread:"})
    assert bot.users_profile_get(user=people["alex"])["profile"]["status_text"] == "Lunch"
    me.users_profile_set(name="title", value="Head of product")
    assert bot.users_info(user=people["alex"])["user"]["profile"]["title"] == "Head of product"
    assert me.users_getPresence(user=people["alex"])["online"] is True
    me.users_setPresence(presence="away")
    assert bot.users_getPresence(user=people["alex"])["presence"] == "away"
    me.users_setPresence(presence="auto")
    pages = [page["members"] for page in me.users_list(limit=3)]
    assert len(pages) > 1 and sum(map(len, pages)) == len(people)


@shows(
    "usergroups.users.update > usergroups.users.list",
    "usergroups.create usergroups.update usergroups.disable usergroups.enable > usergroups.list",
)
def test_user_groups(me, people, refused):
    made = me.usergroups_create(name="Launch crew", handle="launch-crew")["usergroup"]["id"]
    me.usergroups_users_update(usergroup=made, users=[people["priya"], people["alex"]])
    assert set(me.usergroups_users_list(usergroup=made)["users"]) == {people["priya"], people["alex"]}
    me.usergroups_update(usergroup=made, description="Ships it")
    (seen,) = [g for g in me.usergroups_list(include_count=True)["usergroups"] if g["id"] == made]
    assert seen["description"] == "Ships it" and seen["user_count"] == 2
    me.usergroups_disable(usergroup=made)
    assert made not in [g["id"] for g in me.usergroups_list()["usergroups"]]
    me.usergroups_enable(usergroup=made)
    assert made in [g["id"] for g in me.usergroups_list()["usergroups"]]
    assert refused(me.usergroups_create, name="Other", handle="launch-crew") == "handle_already_exists"


@shows(
    "files.getUploadURLExternal files.completeUploadExternal files.revokePublicURL files.delete > files.info",
    "files.completeUploadExternal > files.list",
    "files.sharedPublicURL > files.info",
)
def test_files_in_three_steps(me, bot, channel, server, refused):
    done = bot.files_upload_v2(
        channel=channel, content="hello file", filename="a.txt", title="A", initial_comment="look"
    )
    file = done["file"]["id"]
    info = me.files_info(file=file)
    assert info["content"] == "hello file" and info["file"]["channels"] == [channel]
    assert file in [f["id"] for f in me.files_list(channel=channel)["files"]]
    posted = me.conversations_history(channel=channel)["messages"][0]
    assert posted["text"] == "look" and posted["files"][0]["id"] == file
    url = info["file"]["url_private"].removeprefix(server.url)
    status, body, _ = server.ask("GET", url, token="xoxb-a-bot")
    assert status == 200 and body == b"hello file"
    me.api_call("reactions.add", params={"file": file, "name": "eyes"})
    assert me.reactions_get(file=file)["file"]["reactions"][0]["name"] == "eyes"
    own = me.files_upload_v2(content="mine", filename="mine.csv")["file"]["id"]
    assert me.files_sharedPublicURL(file=own)["file"]["public_url_shared"] is True
    me.files_revokePublicURL(file=own)
    assert me.files_info(file=own)["file"]["public_url_shared"] is False
    assert refused(bot.files_info, file=own) == "file_not_found"
    me.files_delete(file=own)
    assert refused(me.files_info, file=own) == "file_not_found"


def test_an_upload_of_the_wrong_length_is_refused(bot, server, refused):
    made = bot.files_getUploadURLExternal(filename="x.bin", length=4)
    assert server.ask("POST", made["upload_url"].removeprefix(server.url), {"too": "long"})[0] == 400
    assert refused(bot.files_completeUploadExternal, files=[{"id": made["file_id"]}]) == "file_update_failed"


@shows("dnd.setSnooze dnd.endSnooze dnd.endDnd > dnd.info", "dnd.endDnd > dnd.teamInfo")
def test_do_not_disturb(me, bot, people, refused):
    me.dnd_setSnooze(num_minutes=30)
    assert me.dnd_info()["snooze_enabled"] is True
    me.dnd_endSnooze()
    assert me.dnd_info()["snooze_enabled"] is False and refused(me.dnd_endSnooze) == "snooze_not_active"
    me.dnd_endDnd()
    assert me.dnd_info()["dnd_enabled"] is False
    assert bot.dnd_teamInfo(users=[people["alex"]])["users"][people["alex"]]["dnd_enabled"] is False


@shows("views.publish > views.update", "views.update > state")
def test_home_views(bot, people, refused):
    home = {"type": "home", "blocks": [{"type": "divider"}]}
    made = bot.views_publish(user_id=people["alex"], view=home)["view"]
    text = {"type": "section", "text": {"type": "mrkdwn", "text": "hi"}}
    changed = bot.views_update(view_id=made["id"], view={**home, "blocks": [text]}, hash=made["hash"])["view"]
    assert changed["blocks"] == [text]
    assert refused(bot.views_update, view_id=made["id"], view=home, hash="old") == "hash_conflict"
    assert (
        refused(bot.views_open, trigger_id="1.2", view={"type": "modal", "title": {}, "blocks": []})
        == "invalid_trigger_id"
    )
    assert (
        refused(bot.views_push, trigger_id="1.2", view={"type": "modal", "title": {}, "blocks": []})
        == "invalid_trigger_id"
    )
    assert bot.blocks_validate(blocks=[text])["ok"]
    assert refused(bot.blocks_validate, blocks=[{"type": "nope"}]) == "invalid_blocks"


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("blockers", {"Launch date"}),
        ("from:@priya in:#launch blockers", {"Launch date"}),
        ("from:tomasz review", {"LARK-"}),
        ('"press release"', {"the press release"}),
        ("in:launch has::rocket:", {"LARK-"}),
        ("has:pin in:general", {"Reminder: the office"}),
        ("has:link from:priya", {"Slides of"}),
        ("in:launch has:file", {"New onboarding"}),
        ("in:launch is:thread from:priya blockers", {"Launch date"}),
        ("in:launch -from:priya onboarding", {"New onboarding"}),
        ("onboard*", {"New onboarding"}),
        ("before:2020-01-01", set()),
        ("on:2026-03-02 budget", {"Budget review"}),
        ("nothingatall", set()),
    ],
)
def test_search_operators(me, query, found):
    matches = me.search_messages(query=query, count=50)["messages"]["matches"]
    assert len(matches) == len(found) and all(any(word in m["text"] for m in matches) for word in found), matches


def test_search_pages_sorts_and_finds_files(me):
    answer = me.search_messages(query="from:mina", sort="timestamp", sort_dir="asc", count=2)["messages"]
    assert answer["total"] >= 4 and answer["paging"]["pages"] >= 2 and len(answer["matches"]) == 2
    assert answer["matches"][0]["ts"] < answer["matches"][1]["ts"]
    assert me.search_files(query="onboarding")["files"]["matches"][0]["name"] == "onboarding.md"
    both = me.search_all(query="onboarding")
    assert both["messages"]["total"] == 1 and both["files"]["total"] == 1


@shows(
    "chat.postMessage > search.messages",
    "files.completeUploadExternal > search.files",
    "chat.postMessage > search.all",
)
def test_search_finds_what_was_just_said(me, channel):
    me.chat_postMessage(channel=channel, text=f"zebra{channel.lower()}")
    me.files_upload_v2(channel=channel, content="stripes", filename=f"giraffe{channel.lower()}.txt")
    assert me.search_messages(query=f"zebra{channel.lower()}")["messages"]["total"] == 1
    assert me.search_files(query=f"giraffe{channel.lower()}")["files"]["total"] == 1
    assert me.search_all(query=f"zebra{channel.lower()}")["messages"]["total"] == 1


def test_history_pages_and_bounds(me, channel):
    stamps = [me.chat_postMessage(channel=channel, text=str(number))["ts"] for number in range(7)]
    pages = [
        [m["text"] for m in page["messages"] if "subtype" not in m]
        for page in me.conversations_history(channel=channel, limit=3)
    ]
    assert [text for page in pages for text in page] == list("6543210") and len(pages) >= 3
    some = me.conversations_history(channel=channel, oldest=stamps[2], latest=stamps[5])["messages"]
    assert [m["text"] for m in some] == ["4", "3"]
    some = me.conversations_history(channel=channel, oldest=stamps[2], latest=stamps[5], inclusive=True)["messages"]
    assert [m["text"] for m in some] == ["5", "4", "3", "2"]


@shows("auth.revoke > auth.test")
def test_a_token_can_be_revoked(server, refused):
    from slack_sdk import WebClient

    client = WebClient("xoxb-soon-gone", base_url=f"{server.url}/api/")
    assert client.auth_revoke(test=True)["revoked"] is False
    assert client.auth_revoke()["revoked"] is True
    assert refused(client.auth_test) == "token_revoked"
