"""One server per module; every test has its own user, so that they do not meet."""

from __future__ import annotations

import io
import json
from itertools import count

import pytest
from benchflow_claw_kit.effects import checked
from benchflow_claw_kit.testing import google_client, running
from googleapiclient.errors import HttpError
from googleapiclient.http import MediaIoBaseUpload

effects_are_seen = checked("drive.")
MODULE = "benchflow_service_claw_gdrive.cli"
_numbers = count(1)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with running(MODULE, tmp_path_factory.mktemp("gdrive") / "gdrive.db", seed=("office", 7)) as one:
        yield one


class User:
    """The official client, and a few short cuts."""

    def __init__(self, server, address):
        self.address = address
        self.drive = google_client("drive", "v3", server.url, token=address)
        self.files = self.drive.files()

    def make(self, name="a.txt", content=None, kind="text/plain", fields="*", **body):
        media = MediaIoBaseUpload(io.BytesIO(content), kind) if content is not None else None
        return self.files.create(body={"name": name, **body}, media_body=media, fields=fields).execute()

    def folder(self, name="folder", **body):
        return self.make(name, mimeType="application/vnd.google-apps.folder", **body)["id"]

    def get(self, file, **options):
        return self.files.get(fileId=file, fields="*", **options).execute()

    def find(self, q=None, **options):
        return [one["name"] for one in self.files.list(q=q, **options).execute()["files"]]

    def share(self, file, address, role="reader", **options):
        body = {"type": "user", "role": role, "emailAddress": address}
        return self.drive.permissions().create(fileId=file, body=body, **options).execute()["id"]


@pytest.fixture
def user(server):
    return User(server, f"user{next(_numbers)}@larkspur.example")


@pytest.fixture
def other(server):
    return User(server, f"other{next(_numbers)}@larkspur.example")


@pytest.fixture(scope="module")
def alex(server):
    return User(server, "alex@larkspur.example")


@pytest.fixture
def refused():
    """Status and reason of a call that must fail."""

    def call(request):
        with pytest.raises(HttpError) as caught:
            request.execute()
        error = json.loads(caught.value.content)["error"]
        assert error["code"] == caught.value.status_code and error["message"]
        return caught.value.status_code, error["errors"][0]["reason"]

    return call
