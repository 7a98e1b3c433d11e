"""What is done inside the verifier's box before the verifier runs there. No process of the agent's runs in it, and the
image's own programs are back in their places: its shell can be trusted."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Final

from benchflow_core.contracts.sandboxes import Sandbox
from benchflow_core.errors import InfrastructureError, VerifierError
from benchflow_core.verify.findings import Finding
from benchflow_core.verify.ground import DEFAULT_PATH, name_of, parent_of

__all__ = ["escaped", "find_places", "make_ready", "relink"]

_ENV: Final = {"PATH": DEFAULT_PATH, "LC_ALL": "C", "SHLVL": "1"}
_SECONDS: Final = 120.0

_FIND = """
while IFS= read -r name; do
  for folder do
    [ -e "$folder/$name" ] || [ -h "$folder/$name" ] || continue
    real=$(cd -P "$folder" 2>/dev/null && pwd -P) && printf '%s/%s\\n' "$real" "$name"
  done
done
exit 0
"""
_READY = """
work=$1; shift
umask 0
for folder do
  if [ -e "$folder" ] || [ -h "$folder" ]; then rm -rf "$folder" || exit 3; fi
  mkdir -p "$folder" || exit 3
done
umask 022
set --
bare() {
  [ $# = 0 ] || chown : "$@" 2>/dev/null || for file do
    [ ! -e "$file" ] || chown "$(stat -c %u:%g "$file")" "$file" || exit 4
  done
}
[ -d "$work" ] || { rm -f "$work"; mkdir -p "$work"; }
while IFS= read -r line; do
  rest=${line#* }
  case $rest in *\\\\*) rest=$(printf '%bx' "$rest"); rest=${rest%x} ;; esac
  case $line in
    'remove '*) rm -rf "$rest" || exit 4 ;;
    'plain '*) chmod u-s,g-s "$rest" || exit 4 ;;
    'closed '*) chown 0:0 "$rest" && chmod go-w "$rest" || exit 4 ;;
    'bare '*) set -- "$@" "$rest"; [ $# -lt 200 ] || { bare "$@"; set --; } ;;
    'open '*) chmod 1777 "$rest" || exit 4 ;;
    'python '*)
      for site in /usr/lib/python3/dist-packages /usr/lib/python3*/site-packages /usr/lib64/python3*/site-packages \\
        /usr/local/lib/python3*/*-packages /opt/*/lib/python3*/site-packages \\
        "$work"/.venv/lib/python3*/site-packages "$work"/venv/lib/python3*/site-packages; do
        [ -d "$site" ] && [ ! -h "$site" ] && printf '%s\\n' "$rest" > "$site/0-benchflow-guard.pth"
      done 2>/dev/null
      for lib in /usr/lib/python3.* /usr/lib64/python3.* /usr/local/lib/python3.* /opt/*/lib/python3.*; do
        [ -f "$lib/os.py" ] && [ ! -h "$lib" ] || continue
        own=$(cat "$lib/sitecustomize.py" 2>/dev/null)
        rm -f "$lib/sitecustomize.py" && printf '%s\\n%s\\n' "$rest" "$own" > "$lib/sitecustomize.py"
      done 2>/dev/null ;;
  esac
done
bare "$@"
exit 0
"""
_CACHE: Final = "/etc/ld.so.cache"
_LIBRARIES = f"""
command -v ldconfig >/dev/null && [ -f {_CACHE} ] || exit 9
case $1 in
  first) cp -p {_CACHE} {_CACHE}.image || exit 8 ;;
  again) ldconfig 2>/dev/null || exit 8 ;;
  image) mv {_CACHE}.image {_CACHE}; exit ;;
  done) rm -f {_CACHE}.image; exit ;;
esac
ldconfig -p
"""
_ROUNDS: Final = 4
_CONTROL = re.compile(r"[\x00-\x1f]")
_PROCESSOR = re.compile(r',? hwcap: "[^"]*"')


def escaped(path: str) -> str:
    """As it stands in an order, which is one line."""
    text = path.replace("\\", "\\\\")
    return _CONTROL.sub(lambda found: f"\\0{ord(found[0]):03o}", text)


async def find_places(box: Sandbox, names: Iterable[str], folders: Sequence[str]) -> list[str]:
    """Every place where one of these folders holds one of these names, in order, through no link to a folder."""
    wanted = "".join(f"{name}\n" for name in dict.fromkeys(names))
    done = await box.exec(
        ("/bin/sh", "-c", _FIND, "sh", *folders),
        stdin=wanted.encode(errors="surrogateescape"),
        env=_ENV,
        user="root",
        cwd="/",
        timeout=_SECONDS,
    )
    if done.exit_code:
        raise _no_shell(done.exit_code, done.stderr)
    return list(dict.fromkeys(done.stdout.decode(errors="surrogateescape").splitlines()))


async def make_ready(
    box: Sandbox, folders: Sequence[str], workdir: str, orders: Iterable[str] = (), service: str = "main"
) -> None:
    """New empty folders for the output, the working directory if it is gone, and the orders, one per line."""
    text = "".join(f"{order}\n" for order in orders)
    done = await box.exec(
        ("/bin/sh", "-c", _READY, "sh", workdir, *folders),
        stdin=text.encode(errors="surrogateescape"),
        env=_ENV,
        user="root",
        cwd="/",
        timeout=_SECONDS,
        service=service,
    )
    if done.exit_code in (3, 4) or done.timed_out:
        tail = " ".join(done.stderr.decode("utf-8", "replace").split())[-300:]
        raise InfrastructureError(f"the verifier's box could not be made ready: {tail or 'it took too long'}")
    if done.exit_code:
        raise _no_shell(done.exit_code, done.stderr)


async def relink(box: Sandbox, agents: Collection[str], wanted: Callable[[str], bool]) -> list[Finding]:
    """Make the loader's cache anew with the agent's libraries in it, but with none in the place of one of the image's.

    `wanted`: a library that the task asks for comes first.
    Without `ldconfig`, or where it fails, the image's own cache stays as it is.
    """
    before = await _libraries(box, "first")
    if before is None:
        return []
    findings: list[Finding] = []
    for _ in range(_ROUNDS):
        after = await _libraries(box, "again")
        wrong = (
            None if after is None else {p for k, p in after.items() if before.get(_base(k), p) != p != before.get(k)}
        )
        wrong = wrong and {path for path in wrong if not wanted(path)}
        if not wrong:
            await _libraries(box, "image" if wrong is None else "done")
            return findings
        folders = {parent_of(path) for path in wrong}
        guilty = sorted(wrong | {p for p in agents if parent_of(p) in folders and ".so" in name_of(p)})
        await make_ready(box, (), "/", (f"remove {escaped(path)}" for path in guilty))
        why = "the loader would take it in place of a library of the image"
        findings += [Finding("shadowing-library", path, "set-aside", why) for path in guilty if path in agents]
    await _libraries(box, "image")
    return findings


async def _libraries(box: Sandbox, how: str) -> dict[str, str] | None:
    """What the loader finds, by name and kind; nothing where that cannot be said."""
    done = await box.exec(("/bin/sh", "-c", _LIBRARIES, "sh", how), env=_ENV, user="root", cwd="/", timeout=_SECONDS)
    if done.exit_code:
        return None
    found: dict[str, str] = {}
    for line in done.stdout.decode(errors="surrogateescape").splitlines():
        name, arrow, path = line.strip().partition(" => ")
        if arrow:
            found.setdefault(name, path)
    return found


def _base(name: str) -> str:
    """Without the processor that a library is for: the loader prefers such a one to the image's."""
    return _PROCESSOR.sub("", name)


def _no_shell(code: int, stderr: bytes) -> VerifierError:
    tail = " ".join(stderr.decode("utf-8", "replace").split())[-300:]
    return VerifierError(
        f"the image's /bin/sh does not work in the verifier's box (exit code {code}): {tail}",
        remedy="The verifier needs an image with a shell; or verify in an image of its own.",
    )
