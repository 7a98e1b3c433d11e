"""Canvases, lists, streams, remote files, calls, photos: through the official client."""

from __future__ import annotations

import io
import urllib.error
import urllib.request

import pytest
from benchflow_claw_kit.effects import shows
from slack_sdk import WebClient

pytestmark = pytest.mark.xdist_group("claw-slack-workspace")
PLAN = "# Plan\nShip in *May*.\n\n- one\n- two\n\n## Risks\nNone"


def markdown(text):
    return {"type": "markdown", "markdown": text}


def content(client, canvas):
    return client.canvases_getContent(canvas_id=canvas)["content"]


def section(client, canvas, **criteria):
    return [one["id"] for one in client.canvases_sections_lookup(canvas_id=canvas, criteria=criteria)["sections"]]


@shows(
    "canvases.create canvases.edit canvases.delete > canvases.getContent",
    "canvases.edit > canvases.sections.lookup",
)
def test_canvases_are_written_section_by_section(me, refused):
    canvas = me.canvases_create(title="Launch", document_content=markdown(PLAN))["canvas_id"]
    assert content(me, canvas) == "# Plan\n\nShip in *May*.\n\n- one\n- two\n\n## Risks\n\nNone"
    [risks] = section(me, canvas, section_types=["h2"], contains_text="risk")
    assert len(section(me, canvas, section_types=["any_header"])) == 2
    me.canvases_edit(
        canvas_id=canvas,
        changes=[
            {"operation": "insert_after", "section_id": risks, "document_content": markdown("Rain")},
            {
                "operation": "replace",
                "section_id": section(me, canvas, contains_text="ship")[0],
                "document_content": markdown("Ship in June."),
            },
            {"operation": "delete", "section_id": section(me, canvas, contains_text="none")[0]},
            {"operation": "insert_at_start", "document_content": markdown("Draft")},
            {"operation": "insert_at_end", "document_content": markdown("```\n\ncode\n```")},
            {"operation": "rename", "title_content": markdown("Spring")},
        ],
    )
    expected = "Draft\n\n# Plan\n\nShip in June.\n\n- one\n- two\n\n## Risks\n\nRain\n\n```\n\ncode\n```"
    assert content(me, canvas) == expected and me.canvases_getContent(canvas_id=canvas)["title"] == "Spring"
    nowhere = [{"operation": "insert_before", "section_id": "nope", "document_content": markdown("x")}]
    assert refused(me.canvases_edit, canvas_id=canvas, changes=nowhere) == "canvas_editing_failed"
    assert refused(me.canvases_edit, canvas_id=canvas, changes=[{"operation": "jump"}]) == "invalid_arguments"
    assert refused(me.canvases_create, document_content={"type": "html"}) == "invalid_arguments"
    assert refused(me.canvases_sections_lookup, canvas_id=canvas, criteria={}) == "invalid_arguments"
    me.canvases_delete(canvas_id=canvas)
    assert refused(me.canvases_getContent, canvas_id=canvas) == "canvas_not_found"


@shows("conversations.canvases.create canvases.access.set canvases.access.delete > canvases.getContent")
def test_who_may_open_a_canvas(me, bot, channel, people, refused):
    mine = me.canvases_create(document_content=markdown("secret"))["canvas_id"]
    assert refused(bot.canvases_getContent, canvas_id=mine) == "canvas_not_found"
    robot = bot.auth_test()["user_id"]
    me.canvases_access_set(canvas_id=mine, access_level="read", user_ids=[robot])
    assert content(bot, mine) == "secret"
    change = [{"operation": "insert_at_end", "document_content": markdown("x")}]
    assert refused(bot.canvases_edit, canvas_id=mine, changes=change) == "restricted_action"
    me.canvases_access_delete(canvas_id=mine, user_ids=[robot])
    assert refused(bot.canvases_getContent, canvas_id=mine) == "canvas_not_found"
    shared = me.conversations_canvases_create(channel_id=channel, document_content=markdown("ours"))["canvas_id"]
    bot.canvases_edit(canvas_id=shared, changes=change)
    assert content(bot, shared) == "ours\n\nx"
    assert refused(me.canvases_create, channel_id=channel) == "channel_canvas_already_exists"
    assert refused(me.canvases_access_set, canvas_id=mine, access_level="king", user_ids=[robot]) == "invalid_arguments"
    assert refused(me.canvases_access_set, canvas_id=mine, access_level="read", user_ids=["U0"]) == "user_not_found"


SCHEMA = [
    {"key": "task", "name": "Task", "type": "text", "is_primary_column": True},
    {"key": "who", "name": "Who", "type": "user"},
    {
        "key": "state",
        "name": "State",
        "type": "select",
        "options": {"choices": [{"value": "open", "label": "Open"}, {"value": "done", "label": "Done"}]},
    },
]


def rich(text):
    section = {"type": "rich_text_section", "elements": [{"type": "text", "text": text}]}
    return [{"type": "rich_text", "elements": [section]}]


def rows(client, listing):
    found = client.slackLists_items_list(list_id=listing)["items"]
    return [{field["key"]: field["text"] for field in item["fields"]} for item in found]


@pytest.fixture
def listing(me):
    made = me.slackLists_create(name="Launch", schema=SCHEMA)
    return made["list_id"], {one["key"]: one["id"] for one in made["list_metadata"]["schema"]}


@shows(
    "slackLists.create slackLists.items.create slackLists.items.update slackLists.items.delete > slackLists.items.list",
    "slackLists.items.deleteMultiple > slackLists.items.list",
    "slackLists.update > slackLists.items.info",
)
def test_lists_have_rows_with_typed_cells(me, people, listing, refused):
    target, column = listing
    fields = [
        {"column_id": column["task"], "rich_text": rich("Write")},
        {"column_id": column["state"], "select": ["open"]},
    ]
    made = me.slackLists_items_create(list_id=target, initial_fields=fields)["item"]
    copy = me.slackLists_items_create(list_id=target, duplicated_item_id=made["id"])["item"]["id"]
    me.slackLists_items_update(
        list_id=target,
        cells=[
            {"row_id": made["id"], "column_id": column["state"], "select": ["done"]},
            {"row_id": made["id"], "column_id": column["who"], "user": [people["grace"]]},
            {"row_id_to_create": True, "column_id": column["task"], "rich_text": rich("New")},
        ],
    )
    assert rows(me, target) == [
        {"task": "Write", "who": people["grace"], "state": "done"},
        {"task": "Write", "state": "open"},
        {"task": "New"},
    ]
    me.slackLists_update(id=target, name="Landing")
    info = me.slackLists_items_info(list_id=target, id=copy)
    assert info["list"]["name"] == "Landing" and info["record"]["id"] == copy
    me.slackLists_items_delete(list_id=target, id=copy)
    assert len(rows(me, target)) == 2
    assert refused(me.slackLists_items_info, list_id=target, id=copy) == "item_not_found"
    wrong = [{"column_id": column["state"], "select": ["maybe"]}]
    assert refused(me.slackLists_items_create, list_id=target, initial_fields=wrong) == "invalid_option"
    assert (
        refused(me.slackLists_items_create, list_id=target, initial_fields=[{"column_id": "x"}]) == "invalid_column_id"
    )
    assert refused(me.slackLists_create, name="x", schema=[{"name": "a", "type": "colour"}]) == "invalid_arguments"
    left = [item["id"] for item in me.slackLists_items_list(list_id=target)["items"]]
    twin = me.slackLists_create(name="Twin", copy_from_list_id=target, include_copied_list_records=True)["list_id"]
    me.slackLists_items_deleteMultiple(list_id=target, ids=left)
    assert rows(me, target) == [] and len(rows(me, twin)) == 2
    page = me.slackLists_items_list(list_id=twin, limit=1)
    rest = me.slackLists_items_list(list_id=twin, limit=1, cursor=page["response_metadata"]["next_cursor"])
    assert len(rest["items"]) == 1 and rest["response_metadata"]["next_cursor"] == ""


@shows(
    "slackLists.access.set slackLists.access.delete > slackLists.items.list",
    "slackLists.download.start > slackLists.download.get",
)
def test_lists_are_shared_and_taken_along(server, me, bot, channel, listing, refused):
    target, column = listing
    me.slackLists_items_create(
        list_id=target, initial_fields=[{"column_id": column["task"], "rich_text": rich("a, b")}]
    )
    assert refused(bot.slackLists_items_list, list_id=target) == "list_not_found"
    me.slackLists_access_set(list_id=target, access_level="write", channel_ids=[channel])
    assert rows(bot, target) == [{"task": "a, b"}]
    bot.slackLists_items_create(list_id=target, initial_fields=[{"key": "task", "text": "from the bot"}])
    me.slackLists_access_delete(list_id=target, channel_ids=[channel])
    assert refused(bot.slackLists_items_list, list_id=target) == "list_not_found"
    job = me.slackLists_download_start(list_id=target)["job_id"]
    url = me.slackLists_download_get(list_id=target, job_id=job)["download_url"]
    request = urllib.request.Request(url, headers={"Authorization": "Bearer xoxp-a-person"})
    text = urllib.request.urlopen(request, timeout=30).read().decode()
    assert text == 'Task,Who,State\n"a, b",,\nfrom the bot,,\n'
    with pytest.raises(urllib.error.HTTPError):
        urllib.request.urlopen(urllib.request.Request(url, headers={"Authorization": "Bearer xoxb-a"}), timeout=30)
    assert refused(me.slackLists_download_get, list_id=target, job_id="nope") == "job_not_found"


@shows("chat.startStream chat.appendStream chat.stopStream > conversations.replies")
def test_an_answer_grows(me, bot, channel, refused):
    first = me.chat_postMessage(channel=channel, text="How?")["ts"]
    ts = bot.chat_startStream(channel=channel, thread_ts=first, markdown_text="By ")["ts"]
    bot.chat_appendStream(channel=channel, ts=ts, markdown_text="doing ")

    def said():
        return me.conversations_replies(channel=channel, ts=first)["messages"][-1]["text"]

    assert said() == "By doing "
    bot.chat_appendStream(channel=channel, ts=ts, chunks=[{"type": "markdown_text", "text": "it"}])
    bot.chat_stopStream(channel=channel, ts=ts, markdown_text=".")
    assert said() == "By doing it."
    late = {"channel": channel, "ts": ts, "markdown_text": "x"}
    assert refused(bot.chat_appendStream, **late) == "message_not_in_streaming_state"
    assert refused(me.chat_appendStream, **late) == "message_not_owned_by_app"


@shows(
    "files.remote.add files.remote.update files.remote.remove > files.remote.info",
    "files.remote.share > files.remote.list",
)
def test_files_that_lie_elsewhere(me, bot, channel, refused):
    made = bot.files_remote_add(external_id=f"x-{channel}", external_url="https://a.example/1", title="One")["file"][
        "id"
    ]
    bot.files_remote_update(file=made, title="Uno", external_url="https://a.example/2")
    seen = bot.files_remote_info(external_id=f"x-{channel}")["file"]
    assert (seen["title"], seen["url_private"], seen["is_external"]) == ("Uno", "https://a.example/2", True)
    assert refused(me.files_remote_info, file=made) == "file_not_found"
    bot.files_remote_share(file=made, channels=channel)
    assert [one["id"] for one in me.files_remote_list(channel=channel)["files"]] == [made]
    assert me.conversations_history(channel=channel)["messages"][0]["files"][0]["title"] == "Uno"
    again = {"external_id": f"x-{channel}", "external_url": "https://a.example/1", "title": "One"}
    assert refused(bot.files_remote_add, **again) == "external_id_already_exists"
    assert refused(bot.files_remote_add, **{**again, "external_url": "ftp:x"}) == "invalid_external_url"
    bot.files_remote_remove(file=made)
    assert refused(bot.files_remote_info, file=made) == "file_not_found"


@shows("calls.add calls.update calls.end calls.participants.add calls.participants.remove > calls.info")
def test_calls(me, people, refused):
    made = me.calls_add(
        external_unique_id="z", join_url="https://meet.example/z", title="Sync", users=[{"slack_id": people["dan"]}]
    )["call"]["id"]
    me.calls_update(id=made, title="Weekly sync")
    me.calls_participants_add(
        id=made, users=[{"slack_id": people["grace"]}, {"external_id": "e1", "display_name": "Eve"}]
    )
    me.calls_participants_remove(id=made, users=[{"slack_id": people["dan"]}])
    me.calls_end(id=made, duration=60)
    seen = me.calls_info(id=made)["call"]
    assert seen["title"] == "Weekly sync" and seen["date_end"] == seen["date_start"] + 60
    assert [one.get("display_name") for one in seen["users"]] == [None, "Eve"]
    assert refused(me.calls_info, id="R0") == "not_found"
    assert refused(me.calls_participants_add, id=made, users=[{"slack_id": "U0"}]) == "user_not_found"


@shows("users.setPhoto users.deletePhoto > users.profile.get")
def test_photos(me, refused):
    before = me.users_profile_get()["profile"]["image_48"]
    me.users_setPhoto(image=io.BytesIO(b"\x89PNG\r\n\x1a\n" + b"x" * 50))
    assert me.users_profile_get()["profile"]["image_48"] != before
    assert refused(me.users_setPhoto, image=io.BytesIO(b"words")) == "bad_image"
    me.users_deletePhoto()
    assert me.users_profile_get()["profile"]["image_48"] == before


@shows("users.list > team.billableInfo")
def test_what_a_workspace_says_of_itself(server, me, bot, people):
    robots = {one["id"] for one in me.users_list()["members"] if one["is_bot"]}
    paid = me.team_billableInfo()["billable_info"]
    assert paid.keys() == set(people.values()) and not any(paid[one]["billing_active"] for one in robots)
    assert me.team_billing_info()["plan"] == "plus" and me.team_preferences_list()["allow_message_deletion"] is True
    stranger = WebClient("xoxp-a-person", base_url=f"{server.url}/api/")
    assert stranger.team_billableInfo(user=people["dan"])["billable_info"] == {people["dan"]: {"billing_active": True}}
