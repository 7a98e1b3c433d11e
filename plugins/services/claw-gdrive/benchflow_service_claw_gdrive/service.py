"""Google Drive v3."""

from __future__ import annotations

from benchflow_claw_kit.service import Service, View

from benchflow_service_claw_gdrive import (
    approvals,
    changes,
    comments,
    content,
    drives,
    files,
    labels,
    listing,
    operations,
    permissions,
    proposals,
    revisions,
)
from benchflow_service_claw_gdrive.api import api
from benchflow_service_claw_gdrive.scenarios import SCENARIOS, load, prepare
from benchflow_service_claw_gdrive.schema import SCHEMA, TABLES
from benchflow_service_claw_gdrive.tools import TOOLS

__all__ = ["METHODS", "SERVICE"]

METHODS = (
    *(approvals, changes, comments, content, drives, files, labels, listing, operations, permissions, proposals),
    revisions,
)
"""The modules that fill the table of methods."""

SERVICE = Service(
    "gdrive",
    "claw-gdrive",
    9005,
    "mock Google Drive API",
    SCHEMA,
    api,
    dialect="legacy",
    scenarios=SCENARIOS,
    load=load,
    prepare=prepare,
    tools=TOOLS,
    tables=TABLES,
    kinds={
        "drive_files": "file",
        "drive_permissions": "permission",
        "drive_comments": "comment",
        "drive_replies": "reply",
        "drive_revisions": "revision",
        "drive_drives": "drive",
        "drive_users": "user",
        "drive_changes": "change",
        "drive_user_files": "user_file",
        "drive_channels": "channel",
        "drive_hidden": "hidden_drive",
        "drive_approvals": "approval",
        "drive_proposals": "access_proposal",
        "drive_labels": "label",
        "drive_file_labels": "file_label",
        "drive_operations": "operation",
        "drive_apps": "app",
    },
    blobs=frozenset({"drive_revisions.content"}),
    views=(
        View(
            "Files",
            "SELECT f.id, f.name, f.mime_type, coalesce(p.name, f.drive) AS folder, f.owner,"
            " f.size, f.trashed, f.modified_by FROM drive_files f LEFT JOIN drive_files p ON p.id = f.parent"
            " ORDER BY f.is_root DESC, folder, f.name",
        ),
        View("Permissions", "SELECT file, type, role, email, domain FROM drive_permissions ORDER BY file"),
        View("Comments", "SELECT file, id, author, content, resolved, deleted FROM drive_comments ORDER BY created"),
        View("Approvals", "SELECT file, initiator, status, responses FROM drive_approvals ORDER BY created"),
        View("Shared drives", "SELECT id, name FROM drive_drives ORDER BY name"),
        View("Users", "SELECT email, name, is_primary FROM drive_users ORDER BY email"),
    ),
)
