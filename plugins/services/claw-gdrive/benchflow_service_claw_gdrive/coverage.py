"""Why some methods do not answer, for docs/services/gdrive.md."""

from __future__ import annotations

__all__ = ["NOTES"]

NOTES = {"drive.files.generateCseToken": "no: client-side encryption, which needs a key service of the organization"}
