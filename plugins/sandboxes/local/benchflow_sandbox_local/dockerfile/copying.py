"""COPY and ADD: from the context, from another stage, or from a heredoc, into the box of a build."""

from __future__ import annotations

import os
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

from benchflow_boxkit.dockerfile import Heredoc, Instruction
from benchflow_boxkit.expansion import expand

from benchflow_core.contracts import private_folder
from benchflow_core.contracts.quick import dataclass
from benchflow_core.errors import BuildError, CapabilityMissing, TaskError
from benchflow_sandbox_local.dockerfile.ignore import Context
from benchflow_sandbox_local.sandbox import LocalSandbox

__all__ = ["CopyOrder", "copy"]

_URL: Final = re.compile(r"(https?|ftp|ssh|git)://|git@")
_ARCHIVE: Final = re.compile(r"\.(tar|tar\.gz|tgz|tar\.bz2|tbz2?|tar\.xz|txz|tar\.zst)$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class CopyOrder:
    """An instruction with its words expanded, and what it works on."""

    instruction: Instruction
    where: str
    """File and line, for messages."""
    words: list[str]
    workdir: str
    values: dict[str, str]
    box: LocalSandbox
    context: Context | None
    stage: Callable[[str], Awaitable[LocalSandbox]]
    """The box to read an earlier stage from."""

    @property
    def flags(self) -> dict[str, str]:
        return dict(self.instruction.flags)


async def copy(order: CopyOrder) -> None:
    _check_flags(order)
    if len(order.words) < 2:
        raise TaskError(f"{order.where}: {order.instruction.name} needs a source and a destination.")
    *sources, last = order.words
    heredocs = {f"<<{h.name}": h for h in order.instruction.heredocs}
    into = last.endswith("/") or last in (".", "..") or len(sources) > 1
    destination = os.path.normpath(os.path.join(order.workdir, last))
    if not into and destination != "/":
        into = await _is_folder(order.box, destination)
    for source in sources:
        plain = re.sub(r"^<<-?[\"']?|[\"']$", "", source) if source.startswith("<<") else ""
        if plain and f"<<{plain}" in heredocs:
            await _write_heredoc(order, heredocs[f"<<{plain}"], f"{destination}/{plain}" if into else destination)
        elif "from" in order.flags:
            await _from_stage(order, source, destination, into)
        else:
            await _from_context(order, source, destination, into)


def _check_flags(order: CopyOrder) -> None:
    known = {"from", "chown", "chmod", "link"}
    for name in order.flags:
        if name not in known:
            raise CapabilityMissing(
                f"{order.where}: {order.instruction.name} --{name} is not supported by the embedded sandbox.",
                remedy="Use a sandbox with the capability image-build.",
            )


def _owner(order: CopyOrder) -> str | None:
    owner = order.flags.get("chown")
    return expand(owner, order.values) if owner else None


def _mode(order: CopyOrder) -> int | None:
    text = order.flags.get("chmod")
    if text is None:
        return None
    if not re.fullmatch(r"0?[0-7]{3,4}", text):
        raise TaskError(f"{order.where}: --chmod={text} is not an octal mode.", remedy="Write it like --chmod=755.")
    return int(text, 8)


async def _is_folder(box: LocalSandbox, path: str) -> bool:
    return (await box.exec(["test", "-d", path], cwd="/", user="root")).exit_code == 0


async def _write_heredoc(order: CopyOrder, heredoc: Heredoc, target: str) -> None:
    text = (
        heredoc.text if heredoc.literal else expand(heredoc.text.replace("'", "\\'").replace('"', '\\"'), order.values)
    )
    with private_folder() as folder:
        file = folder / "heredoc"
        file.write_text(text)
        file.chmod(0o644)
        await order.box.put(file, target, user=_owner(order), mode=_mode(order))


async def _from_context(order: CopyOrder, source: str, destination: str, into: bool) -> None:
    if _URL.match(source):
        raise CapabilityMissing(
            f"{order.where}: {order.instruction.name} of a URL is not supported by the embedded sandbox.",
            remedy="Download it in a RUN line, or use a sandbox with the capability image-build.",
        )
    if order.context is None:
        raise TaskError(f"{order.where}: there is no build context to copy {source!r} from.")
    for relative in order.context.find(source, order.where):
        path = order.context.root / relative
        if path.is_dir():
            await _put(order, path, destination, relative)
        elif order.instruction.name == "ADD" and _ARCHIVE.search(relative):
            await _unpack(order, path, destination)
        else:
            await _put(order, path, f"{destination}/{path.name}" if into else destination, relative)


async def _put(order: CopyOrder, path: Path, target: str, relative: str) -> None:
    context = order.context
    assert context is not None
    prefix = "" if relative == "." else f"{relative}/"
    skip = (lambda below, is_dir: context.skip(prefix + below, is_dir)) if context.rules else None
    await order.box.put(path, os.path.normpath(target), user=_owner(order), mode=_mode(order), skip=skip)


async def _unpack(order: CopyOrder, path: Path, destination: str) -> None:
    packed = "/tmp/.benchflow-add"
    await order.box.put(path, packed, user=None, mode=0o600)
    # Owners of the archive can be kept only where the box has their ids.
    owners = "--same-owner" if "nobody" in order.box.info.users else "--no-same-owner"
    script = 'mkdir -p "$2" && tar -xf "$1" -C "$2" "$3"; code=$?; rm -f "$1"; exit $code'
    done = await order.box.exec(["sh", "-c", script, "sh", packed, destination, owners], cwd="/", user="root")
    if done.exit_code:
        log = done.stderr.decode(errors="replace")[-4000:]
        raise BuildError(
            f"{order.where}: {path.name} could not be unpacked: {log.strip()[-300:]}", details={"log": log}
        )


async def _from_stage(order: CopyOrder, source: str, destination: str, into: bool) -> None:
    stage = await order.stage(order.flags["from"])
    found = await stage.exec(
        [
            "sh",
            "-c",
            'for f in $1; do [ -e "$f" ] || [ -L "$f" ] && printf "%s\\0" "$f"; done',
            "sh",
            f"/{source.lstrip('/')}",
        ],
        cwd="/",
        user="root",
    )
    names = [name.decode(errors="surrogateescape") for name in found.stdout.split(b"\0") if name]
    if not names:
        raise TaskError(f"{order.where}: {source!r} is not in the stage {order.flags['from']!r}.")
    for name in names:
        real = (await stage.exec(["readlink", "-f", name], cwd="/", user="root")).stdout.decode().rstrip("\n") or name
        is_file = not await _is_folder(stage, real)
        target = f"{destination}/{os.path.basename(name)}" if into and is_file else destination
        await stage.hand_over(real, order.box, os.path.normpath(target), user=_owner(order), mode=_mode(order))
