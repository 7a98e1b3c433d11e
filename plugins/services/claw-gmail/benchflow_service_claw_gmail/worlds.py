"""The built-in worlds as scenario data: everything comes from the generator that is passed in."""

from __future__ import annotations

from random import Random
from typing import Any

_NAMES = (
    "Priya Shah,Marcus Bell,Elena Rossi,Tom Becker,Sofia Alvarez,Jonas Lind,Amara Okafor,Wei Zhang,Lucia Moreau,"
    "Daniel Kim,Hana Sato,Oscar Novak,Nadia Haddad,Felix Wagner,Ines Costa,Ravi Patel"
)
_PEOPLE = [name.split() for name in _NAMES.split(",")]
_PROJECTS = ("Atlas", "Beacon", "Cobalt", "Driftwood")
_VENDORS = ("Northwind Hosting", "Paperclip Supplies", "Skyline Travel", "Ledgerly")
_TOPICS = (
    ("kick-off notes", "Notes from today are below. The three open questions are scope, budget and who signs off."),
    ("timeline slipping", "The vendor moved the delivery by a week. Can we still keep the review on the 20th?"),
    ("budget approval", "Finance needs your approval before Thursday. The total is within what we planned."),
    ("design review", "Two of the screens changed since last week. Please look at the second one in particular."),
    ("customer feedback", "Five interviews are done. The summary is short: they like the idea and not the sign-up."),
)
_ANSWERS = (
    "Thanks, that works for me.",
    "I would rather wait until we have the numbers. Can you send them by Wednesday?",
    "Agreed. I will tell the others.",
    "One question: does this include the second phase?",
)
ME = "Alex Morgan <alex@example.com>"


def _person(random: Random, domain: str = "example.com") -> str:
    first, last = random.choice(_PEOPLE)[0], random.choice(_PEOPLE)[1]
    return f"{first} {last} <{first.lower()}.{last.lower()}@{domain}>"


def _thread(random: Random, number: int) -> list[dict[str, Any]]:
    project = _PROJECTS[number % len(_PROJECTS)]
    topic, text = _TOPICS[(number * 3) % len(_TOPICS)]
    other, copied = _person(random), _person(random)
    subject, age = f"{project}: {topic}", random.randint(30, 700)
    messages: list[dict[str, Any]] = []
    for turn in range(random.randint(1, 4)):
        mine = turn % 2 == 1
        messages.append(
            {
                "from": ME if mine else other,
                "to": other if mine else ME,
                "cc": copied if number % 3 == 0 else "",
                "subject": subject if turn == 0 else f"Re: {subject}",
                "body": text if turn == 0 else random.choice(_ANSWERS),
                "date": f"-{age - turn * 5}h",
                "thread": f"thread-{number}",
                "labels": ["SENT"]
                if mine
                else ["INBOX", *(["UNREAD"] if random.random() < 0.4 else []), f"Projects/{project}"],
            }
        )
    if number % 4 == 0:
        rows = "\n".join(f"{name},{random.randint(1000, 9000)}" for name in ("design", "build", "test"))
        messages[0]["attachments"] = [
            {"filename": f"{project.lower()}-budget.csv", "type": "text/csv", "content": f"item,eur\n{rows}\n"}
        ]
    return messages


def _invoice(random: Random, number: int) -> dict[str, Any]:
    vendor = random.choice(_VENDORS)
    total = f"{random.randint(40, 2400)}.{random.randint(0, 99):02d}"
    name = f"invoice-{2026000 + number}.pdf"
    return {
        "from": f"{vendor} <billing@{vendor.split()[0].lower()}.example>",
        "to": ME,
        "subject": f"Invoice {2026000 + number} from {vendor}",
        "body": f"Your invoice over EUR {total} is attached. It is due in {random.choice((7, 14, 30))} days.",
        "date": f"-{random.randint(2, 60)}d",
        "labels": ["INBOX", "CATEGORY_UPDATES", *(["UNREAD"] if number % 2 else ["Finance"])],
        "attachments": [
            {"filename": name, "type": "application/pdf", "content": f"%PDF-1.4\n% total EUR {total}\n%%EOF\n"}
        ],
    }


def _newsletter(random: Random, number: int) -> dict[str, Any]:
    title = random.choice(("The Weekly Build", "Product Letters", "Remote Notes"))
    return {
        "from": f"{title} <hello@{title.split()[-1].lower()}.example>",
        "to": ME,
        "subject": f"{title} #{140 + number}",
        "html": f"<h1>{title}</h1><p>This week: {random.choice(_TOPICS)[0]}, and what we learned.</p>",
        "date": f"-{number * 7 + 1}d",
        "labels": ["INBOX", "CATEGORY_PROMOTIONS", "UNREAD"],
        "headers": {
            "List-Unsubscribe": "<https://news.example/unsubscribe>",
            "List-Id": f"<{title.split()[-1].lower()}.example>",
        },
    }


def _spam(random: Random, number: int) -> dict[str, Any]:
    return {
        "from": f"Prize Office <win{number}@lucky.example>",
        "to": ME,
        "subject": random.choice(("You have won", "Final notice: claim now", "Account suspended")),
        "body": "Send your bank details to receive your prize today.",
        "date": f"-{random.randint(1, 20)}d",
        "labels": ["SPAM", "UNREAD"],
    }


def office(random: Random) -> dict[str, Any]:
    messages = [message for number in range(14) for message in _thread(random, number)]
    messages += [_invoice(random, number) for number in range(8)]
    messages += [_newsletter(random, number) for number in range(6)]
    messages += [_spam(random, number) for number in range(4)]
    messages.append(
        {
            "from": "Alice Nguyen <alice@example.com>",
            "to": ME,
            "subject": "Meeting on Thursday?",
            "body": "Hi Alex,\n\ncan we meet on Thursday at 14:00 for half an hour? "
            "I would like to go through the Beacon plan.\n\nAlice",
            "date": "-3h",
            "labels": ["INBOX", "UNREAD", "IMPORTANT"],
        }
    )
    for number in range(2):
        other = _person(random)
        messages.append(
            {
                "from": ME,
                "to": other,
                "subject": f"Draft {number + 1}",
                "body": "Hello,\n\n",
                "date": "-1d",
                "draft": True,
            }
        )
    labels = ["Finance", *(f"Projects/{name}" for name in _PROJECTS)]
    user = {"email": "alex@example.com", "name": "Alex Morgan", "labels": labels, "signature": "Alex Morgan<br>Product"}
    alice = {"email": "alice@example.com", "name": "Alice Nguyen"}
    return {"users": [user, alice], "messages": messages}


_PROBLEMS = (
    ("Cannot log in", "I get error E401 since this morning, on two computers."),
    ("Refund for order", "The parcel came damaged. I would like my money back, photos are attached."),
    ("Feature question", "Can I export the report as CSV? I cannot find it."),
    ("Wrong invoice address", "The invoice names the old company. Please correct it and send it again."),
    ("App crashes on start", "The log is attached. It happens after the last update."),
)


def support(random: Random) -> dict[str, Any]:
    team = ("Support <support@example.com>", "Dana Fox <dana@example.com>")
    messages: list[dict[str, Any]] = []
    for number in range(40):
        title, text = _PROBLEMS[number % len(_PROBLEMS)]
        customer = _person(random, random.choice(("mail.example", "post.example", "inbox.example")))
        ticket, age = 4100 + number, random.randint(3, 400)
        urgent = random.random() < 0.2
        first: dict[str, Any] = {
            "from": customer,
            "to": team[0],
            "subject": f"{'URGENT: ' if urgent else ''}{title} [#{ticket}]",
            "body": f"{text}\n\nOrder {random.randint(10000, 99999)}\n{customer.split(' <')[0]}",
            "date": f"-{age}h",
            "thread": f"ticket-{ticket}",
            "labels": ["INBOX", "UNREAD", *(["Urgent"] if urgent else [])],
        }
        if "attached" in text:
            first["attachments"] = [
                {
                    "filename": f"log-{ticket}.txt",
                    "type": "text/plain",
                    "content": f"E{random.randint(100, 599)} at start\n",
                }
            ]
        messages.append(first)
        if number % 3 == 0:
            first["labels"] = ["INBOX", "Answered"]
            reply = {
                "from": team[0],
                "to": customer,
                "subject": f"Re: {first['subject']}",
                "body": random.choice(_ANSWERS),
            }
            messages.append({**reply, "date": f"-{max(age - 2, 1)}h", "thread": f"ticket-{ticket}", "labels": ["SENT"]})
    filters = [{"criteria": {"subject": "URGENT"}, "action": {"addLabelIds": ["Urgent", "IMPORTANT"]}}]
    users = [
        {
            "email": "support@example.com",
            "name": "Support",
            "labels": ["Urgent", "Answered", "Escalated"],
            "filters": filters,
        },
        {"email": "dana@example.com", "name": "Dana Fox", "labels": ["Escalated"]},
    ]
    return {"users": users, "messages": messages}


def archive(random: Random) -> dict[str, Any]:
    messages = []
    for number in range(2000):
        topic, text = random.choice(_TOPICS)
        messages.append(
            {
                "from": _person(random),
                "to": ME,
                "subject": f"{random.choice(_PROJECTS)}: {topic} ({number})",
                "body": text,
                "date": f"-{number * 3 + 1}h",
                "labels": ["INBOX", *(["UNREAD"] if number % 5 == 0 else [])],
            }
        )
    return {"messages": messages}
