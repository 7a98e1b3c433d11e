"""One server per module; every test makes documents of its own."""

from __future__ import annotations

import pytest
from benchflow_claw_kit.effects import checked
from benchflow_claw_kit.testing import google_client, running
from googleapiclient.errors import HttpError

effects_are_seen = checked("docs.")
MODULE = "benchflow_service_claw_gdoc.cli"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with running(MODULE, tmp_path_factory.mktemp("gdoc") / "gdoc.db", seed=("office", 7)) as one:
        yield one


@pytest.fixture(scope="module")
def docs(server):
    """The official client as the world's first user."""
    return google_client("docs", "v1", server.url).documents()


WITH = {
    "commentsViewMode": "COMMENTS_VIEW_MODE_INCLUDED",
    "suggestionsViewMode": "SUGGESTIONS_INLINE",
    "includeTabsContent": True,
}
"""For a document with its threads."""


def span(low, high):
    return {"range": {"startIndex": low, "endIndex": high}}


class Document:
    """A document of its own, through the official client only."""

    def __init__(self, docs, text=""):
        self.docs = docs
        self.id = docs.create(body={"title": "A document"}).execute()["documentId"]
        if text:
            self.do({"insertText": {"location": {"index": 1}, "text": text}})

    def do(self, *requests, **control):
        body = {"requests": list(requests)} | ({"writeControl": control} if control else {})
        return self.docs.batchUpdate(documentId=self.id, body=body).execute()

    def refused(self, *requests, **control):
        with pytest.raises(HttpError) as caught:
            self.do(*requests, **control)
        return caught.value

    def get(self, **options):
        return self.docs.get(documentId=self.id, **options).execute()

    @property
    def content(self):
        return self.get()["body"]["content"]

    @property
    def text(self):
        return text_of(self.content)

    def paragraphs(self):
        return [one["paragraph"] for one in self.content if "paragraph" in one]

    def runs(self):
        return [
            (element["textRun"]["content"], element["textRun"]["textStyle"])
            for paragraph in self.paragraphs()
            for element in paragraph["elements"]
            if "textRun" in element
        ]

    def table(self):
        return next(one for one in self.content if "table" in one)

    def cells(self):
        return [
            [text_of(c["content"]).rstrip("\n") for c in row["tableCells"]]
            for row in self.table()["table"]["tableRows"]
        ]


def text_of(content):
    parts = []
    for block in content:
        for element in block.get("paragraph", {}).get("elements", []):
            parts.append(element.get("textRun", {}).get("content", ""))
    return "".join(parts)


@pytest.fixture
def document(docs):
    return lambda text="": Document(docs, text)
