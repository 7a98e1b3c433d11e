"""Two worlds: the workspace of a small software company on an ordinary Monday, and one in the middle of an outage."""

from __future__ import annotations

from random import Random
from typing import Any

__all__ = ["incident", "office"]

_DOMAIN = "larkspur.example"
_LUNCH = ("the noodle place", "Café Luz", "the taco truck", "sandwiches from Bruno's", "leftovers")


def _people() -> list[dict[str, Any]]:
    rows: tuple[tuple[str, str, str, dict[str, Any]], ...] = (
        ("alex", "Alex Morgan", "Product lead", {"primary": True, "admin": True}),
        ("priya", "Priya Nair", "Product manager", {}),
        ("tomasz", "Tomasz Lewandowski", "Backend engineer", {}),
        ("grace", "Grace Okafor", "Designer", {"status_text": "In a workshop", "status_emoji": ":art:"}),
        ("dan", "Dan Whitfield", "Operations", {"owner": True}),
        ("mina", "Mina Haddad", "Support lead", {}),
        ("oscar", "Oscar Lindqvist", "Former contractor", {"deleted": True}),
    )
    return [
        {"name": name, "real_name": real, "email": f"{name}@{_DOMAIN}", "title": title, **more}
        for name, real, title, more in rows
    ]


def _team() -> dict[str, str]:
    return {"name": "Larkspur", "domain": "larkspur", "email_domain": _DOMAIN}


def office(random: Random) -> dict[str, Any]:
    ticket, room, place = random.randint(300, 999), random.choice("ABCD"), random.choice(_LUNCH)
    count, day = random.randint(12, 60), random.randint(8, 24)
    general = [
        {
            "user": "dan",
            "text": "Reminder: the office is closed on Friday for the move.",
            "pinned": True,
            "reactions": {"tada": ["mina", "grace"]},
        },
        {"user": "mina", "text": "Welcome back everyone! @here stand-up moves to 10:00."},
        {
            "user": "priya",
            "text": "Slides of the all-hands: https://slides.larkspur.example/all-hands",
            "reactions": {"eyes": ["alex"], "+1": ["tomasz", "dan"]},
        },
    ]
    launch = [
        {
            "user": "priya",
            "text": f"Launch date is April {day}. Please put your blockers in this thread.",
            "thread": [
                {"user": "tomasz", "text": f"Import is slow above {count}k rows, LARK-{ticket}"},
                {"user": "grace", "text": "Empty states are not final, two days"},
                {"user": "priya", "text": "@alex can you decide on the empty states?"},
            ],
        },
        {
            "user": "grace",
            "text": "New onboarding flow",
            "file": {
                "name": "onboarding.md",
                "content": "# Onboarding\n\n1. Sign up\n2. Invite a colleague\n3. First board\n",
            },
        },
        {
            "user": "tomasz",
            "text": f"LARK-{ticket} is in review, should land today",
            "reactions": {"rocket": ["priya"]},
        },
        {"user": "priya", "text": "@alex the press release needs your OK by Wednesday"},
    ]
    support = [
        {"user": "mina", "text": f"{count} tickets over the weekend, mostly about export."},
        {
            "user": "mina",
            "text": "Customer Halden asks for an invoice copy, ticket 4411. Who can help?",
            "thread": [{"user": "dan", "text": "I can, this afternoon"}],
        },
        {"user": "mina", "text": "Another one: Corvid cannot reset their password, ticket 4415"},
    ]
    return {
        "team": _team(),
        "users": _people(),
        "channels": [
            {
                "name": "general",
                "general": True,
                "purpose": "Company-wide announcements",
                "messages": general,
                "creator": "dan",
            },
            {
                "name": "launch",
                "topic": "Spring launch",
                "members": ["alex", "priya", "tomasz", "grace", "clawbot"],
                "creator": "priya",
                "messages": launch,
                "unread": 2,
                "bookmarks": [{"title": "Launch plan", "link": "https://docs.larkspur.example/launch"}],
            },
            {
                "name": "support",
                "topic": "Customer questions",
                "members": ["alex", "mina", "dan", "clawbot"],
                "creator": "mina",
                "messages": support,
            },
            {
                "name": "random",
                "purpose": "Everything else",
                "messages": [
                    {"user": "grace", "text": f"Lunch? I vote for {place}", "reactions": {"yum": ["mina", "tomasz"]}}
                ],
            },
            {
                "name": "leads",
                "private": True,
                "members": ["alex", "dan", "priya"],
                "creator": "dan",
                "messages": [{"user": "dan", "text": f"Budget review on Thursday, room {room}"}],
            },
            {
                "name": "old-website",
                "archived": True,
                "members": ["alex", "grace"],
                "creator": "grace",
                "messages": [{"user": "grace", "text": "The old site is gone, closing this channel"}],
            },
        ],
        "dms": [
            {
                "users": ["alex", "priya"],
                "messages": [{"user": "priya", "text": "Can you send me the final pricing?"}],
                "unread": 1,
            },
            {
                "users": ["alex", "tomasz", "grace"],
                "messages": [{"user": "grace", "text": "Shall we pair on the empty states at 3?"}],
            },
        ],
        "usergroups": [
            {"handle": "design", "name": "Design", "users": ["grace"]},
            {"handle": "oncall", "name": "On call", "users": ["tomasz"]},
        ],
        "emoji": {"larkspur": "https://emoji.larkspur.example/larkspur.png", "shipit": "alias:rocket"},
    }


def incident(random: Random) -> dict[str, Any]:
    """Payments fail since this morning; #inc-payments is where it is handled."""
    rate, ticket, host = random.randint(18, 64), random.randint(1000, 1999), f"pay-{random.randint(2, 9)}"
    alerts = [
        {
            "user": "pagebot",
            "text": f":rotating_light: payment error rate {rate}% (threshold 2%) on {host}",
            "at": "2026-03-02T07:41:00Z",
            "reactions": {"eyes": ["tomasz"]},
        },
        {
            "user": "pagebot",
            "text": f":rotating_light: queue depth above 10000 on {host}",
            "at": "2026-03-02T07:44:00Z",
        },
        {"user": "pagebot", "text": ":white_check_mark: certificate check passed", "at": "2026-03-02T08:00:00Z"},
        {"user": "pagebot", "text": ":warning: disk 81% on db-1", "at": "2026-03-02T08:05:00Z"},
    ]
    channel = [
        {
            "user": "tomasz",
            "text": f"I am incident lead. INC-{ticket}. Symptom: card payments fail, error rate {rate}%.",
            "at": "2026-03-02T07:50:00Z",
            "pinned": True,
        },
        {
            "user": "tomasz",
            "text": "Timeline goes in this thread please.",
            "at": "2026-03-02T07:52:00Z",
            "thread": [
                {"user": "tomasz", "text": "07:38 deploy of payments 4.12", "at": "2026-03-02T07:53:00Z"},
                {"user": "dan", "text": "07:41 first alert", "at": "2026-03-02T07:54:00Z"},
                {"user": "mina", "text": "07:55 first customer ticket (Halden)", "at": "2026-03-02T07:58:00Z"},
            ],
        },
        {"user": "dan", "text": "Rollback of 4.12 is ready, need a go from @alex", "at": "2026-03-02T08:21:00Z"},
        {
            "user": "mina",
            "text": f"{random.randint(9, 40)} tickets so far. What may I tell customers?",
            "at": "2026-03-02T08:30:00Z",
        },
        {
            "user": "grace",
            "text": "Status page draft: https://status.larkspur.example/drafts/12",
            "at": "2026-03-02T08:34:00Z",
        },
    ]
    people = [*_people(), {"name": "pagebot", "real_name": "PageBot", "bot": True}]
    return {
        "team": _team(),
        "users": people,
        "channels": [
            {
                "name": "general",
                "general": True,
                "creator": "dan",
                "messages": [{"user": "dan", "text": "Good morning!", "at": "2026-03-02T07:00:00Z"}],
            },
            {
                "name": "alerts",
                "members": ["alex", "tomasz", "dan", "pagebot", "clawbot"],
                "creator": "dan",
                "messages": alerts,
                "unread": 2,
            },
            {
                "name": "inc-payments",
                "topic": f"INC-{ticket}: status investigating",
                "members": ["alex", "tomasz", "dan", "mina", "grace", "clawbot"],
                "creator": "tomasz",
                "messages": channel,
                "unread": 3,
                "bookmarks": [{"title": "Runbook: payments", "link": "https://runbooks.larkspur.example/payments"}],
            },
            {
                "name": "support",
                "members": ["alex", "mina", "clawbot"],
                "creator": "mina",
                "messages": [
                    {
                        "user": "mina",
                        "text": "Halden, Corvid and Tern all report failed payments",
                        "at": "2026-03-02T08:10:00Z",
                    }
                ],
            },
            {
                "name": "exec-updates",
                "private": True,
                "members": ["alex", "dan"],
                "creator": "dan",
                "messages": [
                    {"user": "dan", "text": "I need two sentences for the board at 10:00", "at": "2026-03-02T08:40:00Z"}
                ],
            },
        ],
        "dms": [
            {
                "users": ["alex", "dan"],
                "messages": [
                    {"user": "dan", "text": "Do I have your go for the rollback?", "at": "2026-03-02T08:45:00Z"}
                ],
                "unread": 1,
            }
        ],
        "usergroups": [{"handle": "oncall", "name": "On call", "users": ["tomasz", "dan"]}],
    }
