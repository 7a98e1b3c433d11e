"""Many at once: no write is lost, and of those who change what they saw, one wins."""

from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor

PATH = "/calendar/v3/calendars/primary/events"
BODY = {"summary": "load", "start": {"date": "2026-03-10"}, "end": {"date": "2026-03-11"}}


def test_fifty_clients_lose_nothing(server):
    token = "load@claw.example"

    def client(number):
        return [server.ask("POST", PATH, BODY, token)[0] for _ in range(4)]

    with ThreadPoolExecutor(50) as pool:
        statuses = [status for some in pool.map(client, range(50)) for status in some]
    assert statuses == [200] * 200
    with sqlite3.connect(f"file:{server.db}?mode=ro", uri=True) as db:
        assert db.execute("SELECT count(*) FROM events WHERE calendar_id = ?", (token,)).fetchone() == (200,)


def test_one_of_twenty_editors_wins(server):
    token = "edit@claw.example"
    made = server.ask("POST", PATH, BODY, token)[1]

    def editor(number):
        return server.ask(
            "PATCH", f"{PATH}/{made['id']}", {"summary": f"by {number}"}, token, {"If-Match": made["etag"]}
        )

    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(editor, range(20)))
    assert sorted(status for status, _, _ in answers) == [200] + [412] * 19
    [winner] = [value for status, value, _ in answers if status == 200]
    assert server.ask("GET", f"{PATH}/{made['id']}", token=token)[1]["summary"] == winner["summary"]
