"""Brings the file out of the box and looks at it here: what the agent left behind runs nothing of ours."""

from __future__ import annotations

import posixpath
import tempfile
from pathlib import Path

from benchflow_core.contracts import DownloadLimits, TestOutcome, VerifyContext, VerifyResult
from benchflow_core.errors import TransferRefused, VerifierError

LIMITS = DownloadLimits(max_bytes=1_000_000, max_entries=1)


async def compare(context: VerifyContext) -> VerifyResult:
    path, expected = (context.settings.params.get(key) for key in ("path", "expected"))
    if not isinstance(path, str) or not isinstance(expected, str):
        raise VerifierError("The task's verifier needs `path` and `expected`, both text.")
    found = await _read(context, posixpath.join(context.workdir, path))
    passed = found is not None and found.strip() == expected.strip()
    shown = "nothing" if found is None else repr(found[:200])
    test = TestOutcome(f"{path} is as expected", "passed" if passed else "failed", f"found {shown}")
    return VerifyResult({"reward": 1.0 if passed else 0.0}, tests=(test,))


async def _read(context: VerifyContext, path: str) -> str | None:
    """`None` where there is no such file, or nothing that may be read."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "found"
        try:
            await context.sandbox.download(path, target, limits=LIMITS)
        except (FileNotFoundError, TransferRefused):
            return None
        return target.read_text(errors="replace") if target.is_file() else None
