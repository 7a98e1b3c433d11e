"""auth.*, api.test, team.*, emoji.list, bots.info."""

from __future__ import annotations

from typing import Any

from benchflow_service_claw_slack.call import SlackCall, SlackError
from benchflow_service_claw_slack.methods.registry import method
from benchflow_service_claw_slack.objects.users import bot_profile

__all__: list[str] = []

Answer = dict[str, Any]


@method("api.test", anonymous=True)
def api_test(call: SlackCall) -> Answer:
    if call.has("error"):
        raise SlackError(call.text("error"), args={k: v for k, v in call.args.items() if k != "token"})
    args = {name: value for name, value in call.args.items() if name != "token"}
    return {"args": args} if args else {}


@method("auth.test")
def auth_test(call: SlackCall) -> Answer:
    shown: Answer = {
        "url": f"https://{call.team['domain']}.slack.com/",
        "team": call.team["name"],
        "user": call.me["name"],
        "team_id": call.team["id"],
        "user_id": call.user,
        "is_enterprise_install": False,
    }
    return shown | ({"bot_id": call.me["bot_id"]} if call.is_bot else {})


@method("auth.revoke")
def auth_revoke(call: SlackCall) -> Answer:
    if call.flag("test"):
        return {"revoked": False}
    call.store.insert("tokens", replace=True, token=call.token, user=call.user, revoked=1)
    return {"revoked": True}


@method("auth.teams.list")
def auth_teams(call: SlackCall) -> Answer:
    teams = [{"id": call.team["id"], "name": call.team["name"]}]
    return {"teams": teams, "response_metadata": {"next_cursor": ""}}


@method("team.info", "team:read")
def team_info(call: SlackCall) -> Answer:
    team = call.team
    if call.has("team") and call.text("team") != team["id"]:
        raise SlackError("team_not_found")
    sizes = (34, 44, 68, 88, 102, 132, 230)
    icon = {f"image_{s}": f"https://a.slack-edge.com/80588/img/avatars-teams/ava_0010-{s}.png" for s in sizes}
    shown = {
        "id": team["id"],
        "name": team["name"],
        "url": f"https://{team['domain']}.slack.com/",
        "domain": team["domain"],
        "email_domain": team["email_domain"],
        "icon": {**icon, "image_default": True},
        "avatar_base_url": "https://ca.slack-edge.com/",
        "is_verified": False,
    }
    return {"team": shown}


@method("team.profile.get", "users.profile:read")
def team_profile(call: SlackCall) -> Answer:
    return {"profile": {"fields": [], "sections": []}}


@method("emoji.list", "emoji:read")
def emoji_list(call: SlackCall) -> Answer:
    rows = call.store.all("SELECT name, url FROM emoji ORDER BY name")
    return {"emoji": {row["name"]: row["url"] for row in rows}, "cache_ts": str(call.now)}


@method("bots.info", "users:read")
def bots_info(call: SlackCall) -> Answer:
    if not call.has("bot"):
        return {"bot": bot_profile(call.me, call.team)} if call.is_bot else {}
    row = call.store.one("SELECT * FROM users WHERE bot_id = ?", call.text("bot"))
    if row is None:
        raise SlackError("bot_not_found")
    return {"bot": bot_profile(row, call.team)}


@method("team.preferences.list", "team.preferences:read")
def team_preferences(call: SlackCall) -> Answer:
    return {
        "msg_edit_window_mins": -1,
        "allow_message_deletion": True,
        "display_real_names": False,
        "disable_file_uploads": "allow_all",
        "who_can_post_general": "everyone",
    }


@method("team.billing.info", "team.billing:read")
def billing_info(call: SlackCall) -> Answer:
    return {"plan": "plus"}


@method("team.billableInfo", "admin", people_only=True)
def billable_info(call: SlackCall) -> Answer:
    """Who is paid for: everybody who is neither a bot nor gone."""
    if not call.me["is_admin"]:
        raise SlackError("not_admin")
    rows = call.store.all("SELECT * FROM users WHERE ? IN ('', id) ORDER BY id", call.text("user"))
    if call.has("user") and not rows:
        raise SlackError("user_not_found")
    return {"billable_info": {row["id"]: {"billing_active": not row["is_bot"] and not row["deleted"]} for row in rows}}
