"""Approvals, access proposals, labels, downloads as operations, apps: through the official client."""

from __future__ import annotations

import io
import urllib.request

import pytest
from benchflow_claw_kit.effects import shows
from googleapiclient.http import MediaIoBaseUpload

pytestmark = pytest.mark.xdist_group("claw-gdrive-reviewing")
BUDGET = "1LarkspurBudgetSheet00"
DOC = "application/vnd.google-apps.document"


@pytest.fixture
def reviewed(user, other):
    """A file of `user` that `other` may read, and its approval by both."""
    made = user.make("plan.txt", b"v1")["id"]
    user.share(made, other.address)
    body = {"reviewerEmails": [other.address, user.address], "dueTime": "2026-04-01T00:00:00Z", "message": "Please"}
    return made, user.drive.approvals().start(fileId=made, body=body).execute()["approvalId"]


def responses(client, file, approval):
    found = client.drive.approvals().get(fileId=file, approvalId=approval).execute()
    return found["status"], {one["reviewer"]["emailAddress"]: one["response"] for one in found["reviewerResponses"]}


@shows(
    "approvals.start approvals.approve approvals.comment > approvals.get",
    "approvals.start > approvals.list",
)
def test_an_approval_needs_everybody(user, other, reviewed, refused):
    file, approval = reviewed
    asked = {"fileId": file, "approvalId": approval, "body": {"message": "ok"}}
    assert refused(user.drive.approvals().start(fileId=file, body={"reviewerEmails": [other.address]}))[0] == 400
    other.drive.approvals().approve(**asked).execute()
    assert responses(user, file, approval) == ("IN_PROGRESS", {other.address: "APPROVED", user.address: "NO_RESPONSE"})
    assert refused(other.drive.approvals().approve(**asked))[0] == 400
    other.drive.approvals().comment(**asked).execute()
    before = user.drive.approvals().get(fileId=file, approvalId=approval).execute()
    assert before["dueTime"] == "2026-04-01T00:00:00.000Z" and before["modifyTime"] > before["createTime"]
    user.drive.approvals().approve(**asked).execute()
    [done] = user.drive.approvals().list(fileId=file, fields="*").execute()["items"]
    assert done["status"] == "APPROVED" and done["approvedRevisionId"] == user.get(file)["headRevisionId"]
    assert refused(user.drive.approvals().cancel(**asked))[0] == 400


@shows("approvals.decline approvals.cancel approvals.reassign files.update > approvals.get")
def test_approvals_end_are_handed_on_and_start_again(user, other, alex, reviewed, refused):
    file, approval = reviewed
    asked = {"fileId": file, "approvalId": approval}
    handed = {"replaceReviewers": [{"removedReviewerEmail": other.address, "addedReviewerEmail": alex.address}]}
    assert refused(other.drive.approvals().reassign(**asked, body=handed)) == (403, "insufficientFilePermissions")
    user.share(file, alex.address)
    other.drive.approvals().reassign(**asked, body=handed).execute()
    assert set(responses(user, file, approval)[1]) == {alex.address, user.address}
    assert refused(other.drive.approvals().decline(**asked, body={})) == (403, "forbidden")
    assert (
        refused(
            alex.drive.approvals().reassign(**asked, body={"addReviewers": [{"addedReviewerEmail": other.address}]})
        )[0]
        == 403
    )
    alex.drive.approvals().approve(**asked, body={}).execute()
    user.files.update(fileId=file, media_body=MediaIoBaseUpload(io.BytesIO(b"v2"), "text/plain")).execute()
    assert responses(user, file, approval)[1][alex.address] == "NO_RESPONSE"
    alex.drive.approvals().decline(**asked, body={"message": "no"}).execute()
    assert responses(user, file, approval)[0] == "DECLINED"
    body = {"reviewerEmails": [alex.address], "lockFile": True}
    second = user.drive.approvals().start(fileId=file, body=body).execute()["approvalId"]
    assert user.get(file)["capabilities"]["canModifyContent"] is False
    assert refused(alex.drive.approvals().cancel(fileId=file, approvalId=second, body={}))[0] == 403
    user.drive.approvals().cancel(fileId=file, approvalId=second, body={}).execute()
    assert responses(user, file, second)[0] == "CANCELLED"


@pytest.mark.parametrize(
    ("body", "status"),
    [({}, 400), ({"reviewerEmails": ["x"]}, 400), ({"reviewerEmails": ["nobody@far.example"]}, 403)],
)
def test_bad_approvals(user, refused, body, status):
    file = user.make("a.txt", b"a")["id"]
    assert refused(user.drive.approvals().start(fileId=file, body=body))[0] == status
    assert refused(user.drive.approvals().get(fileId=file, approvalId="nope")) == (404, "notFound")


@shows("accessproposals.resolve > permissions.list", "accessproposals.get > accessproposals.list")
def test_people_who_asked_are_let_in_or_not(alex, user, refused):
    proposals = alex.drive.accessproposals()
    grace, sam = proposals.list(fileId=BUDGET).execute()["accessProposals"]
    assert grace["requestMessage"] == "I need it for the audit" and grace["rolesAndViews"] == [{"role": "reader"}]
    assert proposals.get(fileId=BUDGET, proposalId=grace["proposalId"]).execute() == grace
    assert refused(user.drive.accessproposals().list(fileId=BUDGET)) == (404, "notFound")
    first = {"fileId": BUDGET, "proposalId": grace["proposalId"]}
    assert refused(proposals.resolve(**first, body={"action": "ACCEPT"}))[0] == 400
    assert refused(proposals.resolve(**first, body={}))[0] == 400
    proposals.resolve(**first, body={"action": "ACCEPT", "role": ["commenter"]}).execute()
    proposals.resolve(fileId=BUDGET, proposalId=sam["proposalId"], body={"action": "DENY"}).execute()
    listed = alex.drive.permissions().list(fileId=BUDGET, fields="*").execute()["permissions"]
    assert {one["emailAddress"]: one["role"] for one in listed}["grace@larkspur.example"] == "commenter"
    assert "sam@halden.example" not in {one["emailAddress"] for one in listed}
    assert proposals.list(fileId=BUDGET).execute()["accessProposals"] == []
    assert refused(proposals.resolve(**first, body={"action": "DENY"})) == (404, "notFound")


def change(**field):
    return {"labelModifications": [{"labelId": "confidentiality", "fieldModifications": [field]}]}


@shows("files.modifyLabels > files.listLabels")
def test_labels(user, other, refused):
    file = user.make("l.txt", b"l")["id"]
    files = user.files
    for field in (
        {"fieldId": "level", "setSelectionValues": ["secret"]},
        {"fieldId": "reviewer", "setUserValues": [other.address]},
        {"fieldId": "until", "setDateValues": ["2026-05-01"]},
        {"fieldId": "score", "setIntegerValues": ["7"]},
        {"fieldId": "note", "setTextValues": ["old"]},
    ):
        files.modifyLabels(fileId=file, body=change(**field)).execute()
    files.modifyLabels(fileId=file, body=change(fieldId="note", unsetValues=True)).execute()
    [label] = files.listLabels(fileId=file).execute()["labels"]
    fields = label["fields"]
    assert fields["level"]["selection"] == ["secret"] and fields["score"]["integer"] == ["7"] and "note" not in fields
    assert (
        fields["reviewer"]["user"][0]["emailAddress"] == other.address and fields["until"]["valueType"] == "dateString"
    )
    for bad in (
        change(fieldId="level", setSelectionValues=["purple"]),
        change(fieldId="level", setTextValues=["secret"]),
        change(fieldId="nope", setTextValues=["x"]),
        change(fieldId="until", setDateValues=["soon"]),
    ):
        assert refused(files.modifyLabels(fileId=file, body=bad))[0] == 400
    assert refused(files.modifyLabels(fileId=file, body={"labelModifications": [{"labelId": "no"}]}))[0] == 404
    files.modifyLabels(
        fileId=file, body={"labelModifications": [{"labelId": "confidentiality", "removeLabel": True}]}
    ).execute()
    assert files.listLabels(fileId=file).execute()["labels"] == []


@shows("files.download > operations.get", "operations.get > files.get")
def test_a_download_is_an_operation_with_an_address(user, other, refused):
    file = user.make("d.txt", b"first")["id"]
    first = user.get(file)["headRevisionId"]
    user.files.update(fileId=file, media_body=MediaIoBaseUpload(io.BytesIO(b"second"), "text/plain")).execute()
    document = user.make("D", b"words", "text/plain", mimeType=DOC)["id"]

    def fetched(**asked):
        name = user.files.download(**asked).execute()["name"]
        done = user.drive.operations().get(name=name).execute()
        assert done["done"] is True and refused(other.drive.operations().get(name=name)) == (404, "notFound")
        request = urllib.request.Request(
            done["response"]["downloadUri"], headers={"Authorization": f"Bearer {user.address}"}
        )
        return urllib.request.urlopen(request, timeout=30).read()

    assert fetched(fileId=file, revisionId=first) == b"first" and fetched(fileId=file) == b"second"
    assert fetched(fileId=document, mimeType="text/plain").decode("utf-8-sig") == "words"
    assert refused(user.files.download(fileId=file, mimeType="text/plain"))[0] == 400
    assert refused(user.files.download(fileId=document, mimeType="image/gif"))[0] == 400
    assert refused(user.files.download(fileId=file, revisionId="nope")) == (404, "notFound")
    assert refused(user.files.download(fileId=user.folder())) == (403, "fileNotDownloadable")
    assert refused(user.drive.operations().get(name="nope")) == (404, "notFound")


@shows("apps.list > apps.get")
def test_apps(user, refused):
    [one] = user.drive.apps().list().execute()["items"]
    assert user.drive.apps().get(appId=one["id"]).execute() == one and one["name"] == "Larkspur Diagrams"
    assert user.drive.apps().list(appFilterMimeTypes="text/plain").execute()["items"] == []
    assert refused(user.drive.apps().get(appId="1")) == (404, "notFound")
