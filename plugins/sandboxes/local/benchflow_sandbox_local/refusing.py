"""What cannot work here, found out while a job is planned: options, and lines of a Dockerfile."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from benchflow_boxkit import dockerfile
from benchflow_boxkit.interpreter import machine

from benchflow_core.contracts.sandboxes import ImageRequest
from benchflow_core.errors import CapabilityMissing, TaskError, UsageError
from benchflow_sandbox_local import probe
from benchflow_sandbox_local.dockerfile import without

__all__ = ["check_options", "read_dockerfile", "refuse"]

_KNOWN = {"stage": ("1", "2", "3"), "network": ("proxy", "host"), "nesting": ("yes", "no"), "dir": ()}
_REMOTE = ("http://", "https://", "ftp://", "git@")


def check_options(options: Mapping[str, str]) -> None:
    for name, value in options.items():
        if name not in _KNOWN:
            raise UsageError(f"The embedded sandbox has no option {name!r}.", remedy=f"It has: {', '.join(_KNOWN)}.")
        if _KNOWN[name] and value not in _KNOWN[name]:
            raise UsageError(f"{name}={value!r} is not possible.", remedy=f"Choose one of {', '.join(_KNOWN[name])}.")


def refuse(options: Mapping[str, str], env: Mapping[str, str], request: ImageRequest) -> None:
    check_options(options)
    plain = probe.facts(probe.forced_stage()).stage == 3
    if options.get("stage") == "3" and not plain:  # the plan counts on what this machine can do without it
        raise UsageError("stage=3 can do less than was planned with.", remedy="Set BENCHFLOW_LOCAL_STAGE=3 instead.")
    if request.dockerfile is None:
        return
    recipe = read_dockerfile(request.dockerfile)
    for line, what in _unsupported(recipe):
        raise CapabilityMissing(
            f"{recipe.path}:{line}: {what} is not supported by the embedded sandbox.",
            remedy="Use a sandbox with the capability image-build.",
        )
    if plain:
        without.places(recipe)


def read_dockerfile(path: Path) -> dockerfile.Dockerfile:
    try:
        return dockerfile.parse(path.read_text(), path.name, strict=True)
    except (OSError, UnicodeDecodeError) as error:
        raise TaskError(f"{path}: cannot be read as text: {error}.") from error


def _unsupported(recipe: dockerfile.Dockerfile) -> Iterator[tuple[int, str]]:
    """As far as it can be said without variables. Of the last stage: an earlier one may not be needed at all."""
    last, own = recipe.stages[-1], f"linux/{machine()}"
    if last.platform and "$" not in last.platform and "/".join(last.platform.split("/")[:2]) != own:
        yield last.head.line, f"FROM --platform={last.platform} on a {own} machine"
    for line in last.instructions:
        if line.name == "ONBUILD":
            yield line.line, "ONBUILD"
        if line.name in ("COPY", "ADD"):
            for flag, _ in line.flags:
                if flag not in ("from", "chown", "chmod", "link"):
                    yield line.line, f"{line.name} --{flag}"
            words = line.array() or line.text.split()
            if line.name == "ADD" and any(word.startswith(_REMOTE) for word in words):
                yield line.line, "ADD of a URL"
        if line.name == "RUN":
            for flag, value in line.flags:
                kind = dict(part.partition("=")[::2] for part in value.split(",")).get("type", "bind")
                folder = flag == "mount" and kind in ("cache", "tmpfs")
                if not folder and (flag, value) != ("network", "default"):
                    yield line.line, f"RUN --{flag}={value.partition(',')[0]}"
