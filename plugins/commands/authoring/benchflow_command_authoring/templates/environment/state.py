"""State as an archive inside the box, made and unpacked with `tar`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from benchflow_core.contracts import Sandbox
from benchflow_core.errors import InfrastructureError


async def capture(box: Sandbox, paths: Sequence[str], name: str) -> Mapping[str, Any]:
    archive = f"/tmp/{{name}}-{name}.tar"
    await _run(box, "tar", "-cpf", archive, "-C", "/", *(path.lstrip("/") for path in paths))
    return {"archive": archive}


async def put_back(box: Sandbox, paths: Sequence[str], captured: Mapping[str, Any]) -> None:
    await _run(box, "rm", "-rf", "--", *paths)
    await _run(box, "tar", "-xpf", str(captured["archive"]), "-C", "/")


async def _run(box: Sandbox, *argv: str) -> None:
    done = await box.exec(argv, timeout=300)
    if done.exit_code != 0:
        raise InfrastructureError(
            f"{argv[0]} ended with {done.exit_code}: {done.stderr.decode(errors='replace')[-300:]}"
        )
