"""One server per module; every test has its own user, so that they do not meet."""

from __future__ import annotations

import base64
from email.message import EmailMessage
from itertools import count

import pytest
from benchflow_claw_kit.effects import checked
from benchflow_claw_kit.testing import google_client, running

effects_are_seen = checked("gmail.users.")
MODULE = "benchflow_service_claw_gmail.cli"
_numbers = count(1)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with running(MODULE, tmp_path_factory.mktemp("gmail") / "gmail.db", seed=("office", 7)) as one:
        yield one


@pytest.fixture
def owner(server):
    """The official client as the world's first user."""
    return google_client("gmail", "v1", server.url).users()


class User:
    def __init__(self, server, address):
        self.server = server
        self.address = address
        self.service = google_client("gmail", "v1", server.url, token=address)
        self.api = self.service.users()

    def send(self, to, subject="Hello", text="Some words", **headers):
        thread = headers.pop("thread", None)
        body = {"raw": raw(to=to, subject=subject, text=text, **headers)}
        return (
            self.api.messages().send(userId="me", body={**body, **({"threadId": thread} if thread else {})}).execute()
        )

    def get(self, id, **options):
        return self.api.messages().get(userId="me", id=id, **options).execute()

    def find(self, q=None, **options):
        found = self.api.messages().list(userId="me", q=q, **options).execute()
        return [one["id"] for one in found.get("messages", [])]

    def put(self, subject="Hello", text="Some words", labels=("INBOX", "UNREAD"), **headers):
        body = {"raw": raw(subject=subject, text=text, **headers), "labelIds": list(labels)}
        return self.api.messages().insert(userId="me", body=body, internalDateSource="dateHeader").execute()


def raw(text="Some words", files=(), html=None, **headers):
    message = EmailMessage()
    for name, value in headers.items():
        message[name.replace("_", "-")] = value
    message.set_content(text)
    if html:
        message.add_alternative(html, subtype="html")
    for name, kind, content in files:
        main, _, sub = kind.partition("/")
        message.add_attachment(content, maintype=main, subtype=sub, filename=name)
    return base64.urlsafe_b64encode(message.as_bytes()).decode()


@pytest.fixture
def ann(server):
    return User(server, f"ann{next(_numbers)}@claw.example")


@pytest.fixture
def bob(server):
    return User(server, f"bob{next(_numbers)}@claw.example")


def header(message, name):
    return next((one["value"] for one in message["payload"]["headers"] if one["name"].lower() == name.lower()), None)
