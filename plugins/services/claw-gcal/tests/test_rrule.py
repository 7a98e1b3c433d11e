"""Our recurrence rules against dateutil's, on many rules made by chance, and that every walk ends."""

from __future__ import annotations

import time
from datetime import datetime
from itertools import islice
from random import Random

import pytest
from benchflow_service_claw_gcal.rrule import parse_rule
from dateutil.rrule import rrulestr

DAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")


def some_rule(random):
    frequency = random.choice(("DAILY", "WEEKLY", "MONTHLY", "YEARLY"))
    parts = [f"FREQ={frequency}", f"INTERVAL={random.choice((1, 1, 1, 2, 3, 5))}"]
    if random.random() < 0.3:
        parts.append(f"COUNT={random.randint(1, 12)}")
    if random.random() < 0.4:
        parts.append("BYMONTH=" + ",".join(str(n) for n in random.sample(range(1, 13), random.randint(1, 3))))
    if random.random() < 0.4 and frequency != "WEEKLY":
        parts.append(
            "BYMONTHDAY=" + ",".join(str(n) for n in random.sample([1, 5, 13, 28, -1, -3], random.randint(1, 2)))
        )
    if random.random() < 0.5:
        numbered = frequency in ("MONTHLY", "YEARLY") and random.random() < 0.5
        days = random.sample(DAYS, random.randint(1, 3))
        parts.append(
            "BYDAY=" + ",".join((random.choice(("1", "2", "-1", "4")) if numbered else "") + day for day in days)
        )
    if random.random() < 0.15 and frequency == "YEARLY":
        parts.append(f"BYYEARDAY={random.choice((1, 100, 366, -1, -200))}")
    if random.random() < 0.15 and frequency == "YEARLY" and "BYMONTH" not in ";".join(parts):
        parts.append(f"BYWEEKNO={random.choice((1, 20, 52, -2))}")
    if random.random() < 0.2 and any(part.startswith("BY") for part in parts):
        parts.append(f"BYSETPOS={random.choice((1, 2, -1))}")
    if random.random() < 0.2:
        parts.append(f"WKST={random.choice(DAYS)}")
    return ";".join(parts)


@pytest.mark.parametrize("seed", range(3))
def test_same_as_dateutil(seed):
    """As many as we find: beyond them, dateutil may search for the next until the year 9999."""
    random = Random(seed)
    last, low = datetime(2031, 1, 1), datetime(2027, 6, 1)
    compared = 0
    for _ in range(80):
        text = some_rule(random)
        start = datetime(2024, random.randint(1, 12), random.randint(1, 28), 9, 30)
        rule = parse_rule(text, None)
        ours = list(rule.between(start, None, last))
        theirs = list(islice(rrulestr(text, dtstart=start), len(ours)))
        assert ours == theirs, (text, start)
        assert [at for at in rule.between(start, low, last) if at >= low] == [at for at in ours if at >= low], (
            text,
            start,
        )
        compared += bool(ours)
    assert compared > 50


@pytest.mark.parametrize(
    "text",
    [
        "FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30",
        "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30",
        "FREQ=DAILY;BYSETPOS=5",
        "FREQ=DAILY;INTERVAL=7;BYDAY=TU",
    ],
)
def test_a_rule_that_never_matches_ends(text):
    start = time.process_time()
    assert list(parse_rule(text, None).between(datetime(2026, 3, 2), None, datetime(2126, 1, 1))) == []
    assert time.process_time() - start < 3


@pytest.mark.parametrize(
    "text",
    [
        "",
        "FREQ",
        "FREQ=HOURLY",
        "FREQ=DAILY;INTERVAL=0",
        "FREQ=DAILY;COUNT=0",
        "FREQ=DAILY;BYDAY=8MOX",
        "FREQ=DAILY;BYMONTH=13",
        "FREQ=DAILY;X=1",
        "FREQ=DAILY;FREQ=DAILY",
        "FREQ=DAILY;BYDAY=0MO",
    ],
)
def test_no_rules(text):
    with pytest.raises((ValueError, KeyError)):
        parse_rule(text, None)
