"""Two worlds: the documents of a small software company, and those of a local newspaper."""

from __future__ import annotations

from random import Random
from typing import Any

__all__ = ["newsroom", "office"]

_FEATURES = (
    "offline mode",
    "shared filters",
    "bulk export",
    "keyboard shortcuts",
    "audit log",
    "dark theme",
    "saved views",
)
_VENDORS = ("Halden Hosting", "Brightline Print", "Corvid Analytics", "Mistral Couriers", "Tern Insurance")


def _person(name: str, domain: str, primary: bool = False) -> dict[str, Any]:
    return {"email": f"{name.split(maxsplit=1)[0].lower()}@{domain}", "name": name, "primary": primary}


def office(random: Random) -> dict[str, Any]:
    """Larkspur makes a task tracker; Alex runs its product."""
    domain = "larkspur.example"
    names = ("Alex Morgan", "Priya Nair", "Tomasz Lewandowski", "Grace Okafor", "Dan Whitfield")
    users = [_person(name, domain, name.startswith("Alex")) for name in names]
    features = random.sample(_FEATURES, 4)
    quarters = [[f"Q{q}", str(random.randint(180, 420)), f"{random.randint(2, 9)}%"] for q in range(1, 5)]
    budget = [[vendor, f"${random.randint(3, 40) * 250}"] for vendor in random.sample(_VENDORS, 3)]
    plan = [
        {"style": "TITLE", "text": "Spring launch plan"},
        {
            "text": f"Owner: Priya Nair. Launch date: April {random.randint(8, 24)}, 2026.",
            "bold": ["Owner:", "Launch date:"],
        },
        {"heading": 1, "text": "Goals"},
        {
            "bullets": [
                f"Ship {features[0]} to all customers",
                f"Ship {features[1]} behind a flag",
                "Keep p95 latency under 300 ms",
            ]
        },
        {"heading": 1, "text": "Milestones"},
        {
            "table": [
                ["Milestone", "Owner", "Status"],
                ["Design review", "Grace Okafor", "Done"],
                [f"Beta of {features[0]}", "Tomasz Lewandowski", "In progress"],
                ["Release notes", "Dan Whitfield", "Not started"],
            ]
        },
        {"heading": 1, "text": "Open questions"},
        {"numbered": ["Who signs off the pricing page?", f"Does {features[2]} need a migration?"]},
        {"text": "TODO: add the rollback plan.", "name": "rollback"},
    ]
    notes = [
        {"heading": 1, "text": "Weekly product sync, 2026-02-25"},
        "Present: Alex, Priya, Tomasz, Grace.",
        {"heading": 2, "text": "Decisions"},
        {"bullets": [f"{features[3].capitalize()} moves to the summer release", "Support rota starts on Mondays"]},
        {"heading": 2, "text": "Actions"},
        {
            "bullets": [
                "Priya: send the beta invitation list",
                "Tomasz: measure import times",
                "Alex: update the launch plan",
            ]
        },
    ]
    review = [
        {"style": "TITLE", "text": "2025 in numbers"},
        "Draft for the board. Figures are in thousands of dollars.",
        {"table": [["Quarter", "Revenue", "Growth"], *quarters]},
        {"heading": 2, "text": "Vendors"},
        {"table": [["Vendor", "Yearly cost"], *budget]},
        "The tracker has teh same price as last year.",
    ]
    handbook = [
        {"style": "TITLE", "text": "Welcome to Larkspur"},
        {
            "text": "Start with the security training.",
            "links": {"security training": "https://learn.larkspur.example/security"},
        },
        {"numbered": ["Get your laptop from IT", "Join #general", "Book a coffee with your buddy"]},
        "Questions? Write to people@larkspur.example.",
    ]
    return {
        "users": users,
        "documents": [
            {
                "id": "1LarkspurLaunchPlan",
                "title": "Spring launch plan",
                "owner": f"priya@{domain}",
                "content": plan,
                "shared": [
                    {"email": f"alex@{domain}", "role": "writer"},
                    {"email": f"grace@{domain}", "role": "commenter"},
                ],
                "comments": [
                    {
                        "on": "Spring",
                        "author": f"grace@{domain}",
                        "content": "Which week?",
                        "replies": [{"author": f"priya@{domain}", "content": "The second one"}],
                    }
                ],
            },
            {
                "id": "1LarkspurWeeklySync",
                "title": "Weekly sync notes",
                "content": notes,
                "shared": [{"email": f"priya@{domain}", "role": "writer"}],
            },
            {"id": "1LarkspurReview2025", "title": "2025 in numbers", "content": review},
            {
                "id": "1LarkspurHandbook",
                "title": "Employee handbook",
                "owner": f"dan@{domain}",
                "content": handbook,
                "shared": [{"email": f"alex@{domain}", "role": "reader"}],
            },
            {
                "id": "1LarkspurSalaries",
                "title": "Salary bands (confidential)",
                "owner": f"dan@{domain}",
                "content": ["Level 1: 54,000"],
            },
        ],
    }


def newsroom(random: Random) -> dict[str, Any]:
    """The Harbour Gazette; Ines edits it."""
    domain = "gazette.example"
    users = [
        _person(n, domain, n.startswith("Ines")) for n in ("Ines Carvalho", "Joel Brandt", "Mei Tanaka", "Ruth Adeyemi")
    ]
    count, cost = random.randint(120, 480), random.randint(11, 39) / 10
    bridge = [
        {"style": "TITLE", "text": "Old bridge to close for repairs"},
        {"text": "By Joel Brandt", "italic": ["Joel Brandt"]},
        f"The harbour bridge will close on {random.choice(('Monday', 'Tuesday'))} for works of ${cost} million.",
        f'About {count} lorries cross it every day. "We knew it was comming," said a haulier.',
        "[QUOTE FROM MAYOR TO COME]",
        {"heading": 2, "text": "Detours"},
        {"bullets": ["Quay Street, cars only", "Ring road, all traffic", "Ferry, on foot 🚶"]},
    ]
    festival = [
        {"style": "TITLE", "text": "Kelp festival returns"},
        {"text": "By Mei Tanaka", "italic": ["Mei Tanaka"]},
        f"More than {count * 10} visitors are expected at the twelfth kelp festival.",
        "Tickets: [PRICE]. Doors open at [TIME].",
    ]
    calendar = [
        {"heading": 1, "text": "Editorial calendar, March 2026"},
        {
            "table": [
                ["Date", "Story", "Writer", "Words"],
                ["3 March", "Old bridge", "Joel Brandt", "600"],
                ["5 March", "Kelp festival", "Mei Tanaka", "400"],
                ["9 March", "Council budget", "", "800"],
            ]
        },
    ]
    rules = [
        {"style": "TITLE", "text": "House style"},
        {
            "numbered": [
                "Write percent, not %.",
                "Dates are 3 March, not March 3rd.",
                "No exclamation marks in headlines.",
            ]
        },
        {"text": "Every story needs two sources.", "bold": ["two sources"]},
    ]
    return {
        "users": users,
        "documents": [
            {
                "id": "1GazetteBridge",
                "title": "Bridge story",
                "owner": f"joel@{domain}",
                "content": bridge,
                "shared": [{"email": f"ines@{domain}", "role": "writer"}],
            },
            {
                "id": "1GazetteFestival",
                "title": "Festival story",
                "owner": f"mei@{domain}",
                "content": festival,
                "shared": [{"email": f"ines@{domain}", "role": "writer"}],
            },
            {"id": "1GazetteCalendar", "title": "Editorial calendar", "content": calendar},
            {
                "id": "1GazetteStyle",
                "title": "House style",
                "owner": f"ruth@{domain}",
                "content": rules,
                "shared": [{"email": f"ines@{domain}", "role": "reader"}],
            },
        ],
    }
