"""What an agent is offered over MCP."""

from __future__ import annotations

from benchflow_claw_kit.service import Tool

__all__ = ["TOOLS"]

_TEXT = {"type": "string"}
_ID = {"type": "string", "description": "the file's id"}
_FIELDS = {"fields": "id,name,mimeType,parents,size,modifiedTime,owners(emailAddress),trashed"}

TOOLS = (
    Tool(
        "search_files",
        "Files by Drive's query language, e.g. name contains 'plan' and trashed = false.",
        "drive.files.list",
        {"q": _TEXT, "orderBy": _TEXT, "pageSize": {"type": "integer"}, "pageToken": _TEXT},
        fixed={"fields": "nextPageToken,files(id,name,mimeType,parents,modifiedTime)"},
    ),
    Tool("get_file", "A file's facts.", "drive.files.get", {"fileId": _ID}, ("fileId",), _FIELDS),
    Tool("read_file", "A file's bytes.", "drive.files.get", {"fileId": _ID}, ("fileId",), {"alt": "media"}),
    Tool(
        "export_file",
        "A document as text.",
        "drive.files.export",
        {"fileId": _ID},
        ("fileId",),
        {"mimeType": "text/plain"},
    ),
    Tool(
        "create_folder",
        "Make a folder.",
        "drive.files.create",
        {"name": _TEXT, "parents": {"type": "array", "items": _TEXT}},
        ("name",),
        {"mimeType": "application/vnd.google-apps.folder"},
    ),
    Tool(
        "rename_file",
        "Give a file another name.",
        "drive.files.update",
        {"fileId": _ID, "name": _TEXT},
        ("fileId", "name"),
    ),
    Tool(
        "move_file",
        "Put a file into another folder.",
        "drive.files.update",
        {"fileId": _ID, "addParents": _TEXT, "removeParents": _TEXT},
        ("fileId", "addParents", "removeParents"),
    ),
    Tool(
        "trash_file",
        "Put a file into the trash.",
        "drive.files.update",
        {"fileId": _ID},
        ("fileId",),
        {"trashed": True},
    ),
    Tool(
        "share_file",
        "Give somebody a role: reader, commenter or writer.",
        "drive.permissions.create",
        {"fileId": _ID, "role": _TEXT, "emailAddress": _TEXT},
        ("fileId", "role", "emailAddress"),
        {"type": "user"},
    ),
)
