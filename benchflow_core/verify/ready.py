"""What is done inside the verifier's box before the verifier runs there: new, empty folders."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from benchflow_core.contracts.sandboxes import Sandbox
from benchflow_core.errors import InfrastructureError, VerifierError

__all__ = ["DEFAULT_PATH", "make_ready"]

DEFAULT_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_ENV: Final = {"PATH": DEFAULT_PATH, "LC_ALL": "C", "SHLVL": "1"}
_SECONDS: Final = 120.0
_READY: Final = """
work=$1; gone=$2; shift 2
[ -z "$gone" ] || rm -rf "$gone" || exit 4
umask 0
for folder do
  if [ -e "$folder" ] || [ -h "$folder" ]; then rm -rf "$folder" || exit 3; fi
  mkdir -p "$folder" || exit 3
done
umask 022
[ -d "$work" ] || { rm -f "$work"; mkdir -p "$work"; }
exit 0
"""


async def make_ready(box: Sandbox, folders: Sequence[str], workdir: str, gone: str = "", service: str = "main") -> None:
    """Make new empty folders for the output and the working directory if it is gone; remove one path."""
    done = await box.exec(
        ("/bin/sh", "-c", _READY, "sh", workdir, gone, *folders),
        env=_ENV,
        user="root",
        cwd="/",
        timeout=_SECONDS,
        service=service,
    )
    tail = " ".join(done.stderr.decode("utf-8", "replace").split())[-300:]
    if done.exit_code in (3, 4) or done.timed_out:
        raise InfrastructureError(f"the verifier's box could not be made ready: {tail or 'it took too long'}")
    if done.exit_code:
        raise VerifierError(
            f"/bin/sh does not work in the verifier's box (exit code {done.exit_code}): {tail}",
            remedy="The verifier needs an image with a shell; or verify in an image of its own.",
        )
