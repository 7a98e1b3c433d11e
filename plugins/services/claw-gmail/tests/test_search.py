"""The search language, asked through messages.list of the official client."""

from __future__ import annotations

import pytest

from .conftest import User, raw

ME = "seeker@claw.example"
MAIL = {
    "budget": {
        "From": "Priya Shah <priya@corp.example>",
        "To": ME,
        "Subject": "Budget for Atlas",
        "Date": "Sun, 01 Mar 2026 10:00:00 +0000",
    },
    "lunch": {
        "From": "Tom <tom@home.example>",
        "To": ME,
        "Cc": "Eva <eva@corp.example>",
        "Subject": "Lunch on Friday",
        "Date": "Sat, 28 Feb 2026 10:00:00 +0000",
    },
    "old": {
        "From": "Priya Shah <priya@corp.example>",
        "To": "all@corp.example",
        "Subject": "Old news",
        "Date": "Wed, 01 Jan 2025 10:00:00 +0000",
    },
    "report": {
        "From": "bot@reports.example",
        "To": ME,
        "Subject": "Weekly report",
        "Date": "Mon, 02 Mar 2026 08:00:00 +0000",
    },
    "junk": {
        "From": "win@lucky.example",
        "To": ME,
        "Subject": "You won a budget",
        "Date": "Mon, 02 Mar 2026 07:00:00 +0000",
    },
}
TEXT = {
    "budget": "Please approve the budget of 5000 euros before Thursday",
    "lunch": "Pizza or pasta? See https://docs.google.com/document/d/1",
    "old": "nothing to see",
    "report": "numbers attached",
    "junk": "send bank details",
}
LABELS = {
    "budget": ["INBOX", "UNREAD", "IMPORTANT"],
    "lunch": ["INBOX", "STARRED"],
    "old": [],
    "report": ["INBOX", "UNREAD", "CATEGORY_UPDATES"],
    "junk": ["SPAM", "UNREAD"],
}


@pytest.fixture(scope="module")
def seeker(server):
    user = User(server, ME)
    label = user.api.labels().create(userId="me", body={"name": "Team/Big Projects"}).execute()["id"]
    user.names = {}
    for name, headers in MAIL.items():
        files = [("q1-report.pdf", "application/pdf", b"x" * 3000)] if name == "report" else ()
        body = {
            "raw": raw(TEXT[name], files, Message_ID=f"<{name}@x>", **headers),
            "labelIds": LABELS[name] + ([label] if name == "budget" else []),
        }
        id = user.api.messages().insert(userId="me", body=body, internalDateSource="dateHeader").execute()["id"]
        user.names[id] = name
    sent = user.send("tom@home.example", "Re: pizza", "I prefer pasta")
    user.names[sent["id"]] = "sent"
    return user


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", "budget lunch old report sent"),
        ("from:priya", "budget old"),
        ("from:priya@corp.example", "budget old"),
        ("from:(priya OR tom)", "budget old lunch"),
        ("from:pri", ""),
        ("to:me", "budget lunch report"),
        ("to:eva", "lunch"),
        ("cc:eva@corp.example", "lunch"),
        ("from:me", "sent"),
        ("subject:budget", "budget"),
        ("subject:(budget atlas)", "budget"),
        ('subject:"atlas budget"', ""),
        ('"before thursday"', "budget"),
        ("approve 5000", "budget"),
        ("APPROVE", "budget"),
        ("pasta", "lunch sent"),
        ("pasta -from:me", "lunch"),
        ("pasta OR approve", "budget lunch sent"),
        ("pasta | approve", "budget lunch sent"),
        ("{pasta approve}", "budget lunch sent"),
        ("from:priya pasta OR approve", "budget"),
        ("from:tom pasta OR approve", "lunch"),
        ("(from:priya subject:old) OR from:tom", "old lunch"),
        ("-{from:priya from:tom}", "report sent"),
        ("in:inbox", "budget lunch report"),
        ("in:inbox is:unread", "budget report"),
        ("is:read in:inbox", "lunch"),
        ("is:starred", "lunch"),
        ("is:important", "budget"),
        ("in:sent", "sent"),
        ("in:spam", "junk"),
        ("label:spam budget", "junk"),
        ("in:anywhere budget", "budget junk"),
        ("in:archive", "old"),
        ("label:team-big-projects", "budget"),
        ("label:unread", "budget report"),
        ("-label:team-big-projects in:inbox", "lunch report"),
        ("has:userlabels", "budget"),
        ("category:updates", "report"),
        ("has:attachment", "report"),
        ("-has:attachment in:inbox", "budget lunch"),
        ("filename:pdf", "report"),
        ("filename:q1-report.pdf", "report"),
        ("filename:report", "report"),
        ("has:document", "lunch"),
        ("larger:2K", "report"),
        ("smaller:2K in:inbox", "budget lunch"),
        ("size:100000", ""),
        ("after:2026/03/01", "budget report sent"),
        ("after:2026-02-28 before:2026/03/01", "lunch"),
        ("before:2025/06/01", "old"),
        ("before:1772359200 after:1772186400", "lunch"),
        ("newer_than:2d", "budget lunch report sent"),
        ("newer_than:1d", "budget report sent"),
        ("older_than:1y", "old"),
        ("older_than:1m", "old"),
        ("rfc822msgid:lunch@x", "lunch"),
        ("rfc822msgid:<lunch@x>", "lunch"),
        ("is:nonsense", ""),
        ("((((", "budget lunch old report sent"),
        ("-", "budget lunch old report sent"),
        ("OR", "budget lunch old report sent"),
        ('"', "budget lunch old report sent"),
        ("from:", "budget lunch old report sent"),
        ("before:never", ""),
        ("larger:big", ""),
    ],
)
def test_search(seeker, query, expected):
    found = sorted(seeker.names[id] for id in seeker.find(query or None))
    assert found == sorted(expected.split()), query


def test_threads_are_found_by_their_messages(seeker):
    found = seeker.api.threads().list(userId="me", q="from:priya").execute()
    assert len(found["threads"]) == 2 and found["threads"][0]["snippet"].startswith("Please approve")


def test_hostile_queries(seeker):
    for query in (
        "(" * 3000,
        "-" * 3000 + "x",
        "from:" * 500,
        "{" * 100 + "a" + "}" * 100,
        "\x00",
        "a" * 4000,
        "'; DROP TABLE messages; --",
    ):
        seeker.find(query)
    assert seeker.find("from:tom")
