"""Why some methods do not answer, for docs/services/gmail.md."""

from __future__ import annotations

__all__ = ["NOTES", "UNSEEN"]

NOTES = {
    "gmail.users.settings.cse": "no: client-side encryption, which needs a key service of the organization",
    "gmail.users.settings.sendAs.smimeInfo": "no: S/MIME certificates of a hosted organization",
}
UNSEEN = {"gmail.users.settings.sendAs.verify": "nothing: it sends a mail with a link"}
"""Methods that answer and whose effect no other method shows."""
