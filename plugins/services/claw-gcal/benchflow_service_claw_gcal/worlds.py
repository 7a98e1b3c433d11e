"""The built-in worlds as scenario data: everything comes from the generator that is passed in."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from random import Random
from typing import Any

MONDAY = date(2026, 3, 2)
ZONE = "Europe/Berlin"
_ONE_OFF = (
    ("Beacon plan review", "Room Aachen", 60),
    ("Interview: product designer", "Video call", 45),
    ("Budget check", "Room Bonn", 30),
    ("Customer call: Northwind", "Video call", 30),
    ("Retrospective", "Room Aachen", 60),
    ("Dentist", "Hauptstr. 5", 45),
)
_TEAM = ("alice@example.com", "priya@example.com", "marcus@example.com", "elena@partner.example")


def _at(day: date, hour: int, minute: int = 0) -> str:
    return datetime(day.year, day.month, day.day, hour, minute).isoformat()


def office(random: Random) -> dict[str, Any]:
    events: list[dict[str, Any]] = [
        {
            "summary": "Team stand-up",
            "start": _at(MONDAY - timedelta(days=28), 9, 15),
            "duration": 15,
            "recurrence": ["RRULE:FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR"],
            "attendees": list(_TEAM[:3]),
            "location": "Room Bonn",
        },
        {
            "summary": "1:1 with Alice",
            "start": _at(MONDAY - timedelta(days=25), 14),
            "duration": 30,
            "recurrence": ["RRULE:FREQ=WEEKLY;INTERVAL=2;BYDAY=TH"],
            "attendees": [{"email": "alice@example.com", "responseStatus": "accepted"}],
        },
        {
            "summary": "Monthly all-hands",
            "start": _at(MONDAY + timedelta(days=1), 16),
            "recurrence": ["RRULE:FREQ=MONTHLY;BYDAY=1TU;COUNT=12"],
            "organizer": "events@example.com",
            "attendees": [{"email": "alex@example.com", "responseStatus": "accepted"}],
        },
        {
            "summary": "Trip to Lyon",
            "start": "2026-03-17",
            "end": "2026-03-20",
            "transparency": "opaque",
            "location": "Lyon",
        },
        {"summary": "Company holiday", "start": "2026-04-03", "transparency": "transparent", "calendar": "Team"},
    ]
    for day in range(20):
        for _ in range(random.randint(0, 2)):
            summary, place, minutes = random.choice(_ONE_OFF)
            guests = random.sample(_TEAM, random.randint(0, 2)) if place != "Hauptstr. 5" else []
            answers = [
                {"email": who, "responseStatus": random.choice(("accepted", "needsAction", "declined"))}
                for who in guests
            ]
            hour = random.choice((10, 11, 13, 15, 16))
            events.append(
                {
                    "summary": summary,
                    "location": place,
                    "start": _at(MONDAY + timedelta(days=day), hour, random.choice((0, 30))),
                    "duration": minutes,
                    "attendees": answers,
                    "visibility": "private" if summary == "Dentist" else "default",
                }
            )
    events.append(
        {
            "summary": "Roadmap workshop",
            "start": _at(MONDAY + timedelta(days=3), 15),
            "duration": 90,
            "organizer": "elena@partner.example",
            "attendees": [
                {"email": "alex@example.com"},
                {"email": "elena@partner.example", "responseStatus": "accepted"},
            ],
        }
    )
    return {
        "users": [
            {"email": "alex@example.com", "name": "Alex Morgan", "timeZone": ZONE},
            {"email": "alice@example.com", "name": "Alice Nguyen", "timeZone": ZONE},
            {"email": "priya@example.com", "name": "Priya Shah", "timeZone": "Europe/London"},
            {"email": "marcus@example.com", "name": "Marcus Bell", "timeZone": "America/New_York"},
        ],
        "calendars": [
            {
                "summary": "Team",
                "description": "Days off and releases",
                "share": {"alice@example.com": "writer", "example.com": "reader"},
            },
            {"summary": "Personal", "colorId": "11"},
        ],
        "events": events,
    }


_PATIENTS = ("Weber", "Kaya", "Silva", "Jansen", "Popov", "Laurent", "Nowak", "Haas", "Mensah", "Ortiz", "Berg", "Liu")
_VISITS = ("Check-up", "First visit", "Blood test", "Follow-up")
_DOCTORS = ("dr.adler@praxis.example", "dr.chen@praxis.example", "dr.silva@praxis.example")


def clinic(random: Random) -> dict[str, Any]:
    events: list[dict[str, Any]] = []
    for day in range(0, 12):
        when = MONDAY + timedelta(days=day)
        if when.weekday() > 4:
            continue
        for doctor in _DOCTORS:
            for slot in random.sample(range(16), 6):
                patient, kind = random.choice(_PATIENTS), random.choice(_VISITS)
                events.append(
                    {
                        "calendar": doctor,
                        "summary": f"{kind}: {patient}",
                        "start": _at(when, 8 + slot // 2, 30 * (slot % 2)),
                        "duration": 30,
                        "extendedProperties": {
                            "private": {"patient": patient.lower(), "case": str(random.randint(1000, 9999))}
                        },
                    }
                )
    events.append(
        {
            "calendar": _DOCTORS[1],
            "summary": "On leave",
            "start": "2026-03-09",
            "end": "2026-03-14",
            "eventType": "outOfOffice",
        }
    )
    events.append(
        {
            "calendar": "Room 1",
            "summary": "Ultrasound maintenance",
            "start": _at(MONDAY, 12),
            "recurrence": ["RRULE:FREQ=WEEKLY;COUNT=8"],
            "duration": 60,
        }
    )
    reception = "reception@praxis.example"
    rooms = [{"summary": f"Room {n}", "owner": reception, "share": dict.fromkeys(_DOCTORS, "writer")} for n in (1, 2)]
    users = [{"email": reception, "name": "Reception", "timeZone": ZONE}]
    users += [
        {"email": one, "name": one.split("@")[0].replace("dr.", "Dr. ").title(), "timeZone": ZONE} for one in _DOCTORS
    ]
    return {"users": users, "calendars": rooms, "events": events}
