"""From a branch, a tag or nothing to the commit it means at this moment."""

from __future__ import annotations

import re

from benchflow_core.contracts.quick import dataclass
from benchflow_core.errors import ConfigurationError
from benchflow_source_git.address import Address
from benchflow_source_git.program import GitFailed, git

__all__ = ["FULL_COMMIT", "Wanted", "resolve_ref"]

FULL_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_ABBREVIATED = re.compile(r"[0-9a-f]{7,63}")


@dataclass(frozen=True)
class Wanted:
    """What to fetch. `commit` is `None` for an abbreviated one, which only a whole copy can complete."""

    commit: str | None
    name: str
    """The full name of the ref, or the commit as written."""


def resolve_ref(address: Address, ref: str | None) -> Wanted:
    """Asks the repository, unless a whole commit is named: that one cannot change."""
    if ref is not None and FULL_COMMIT.fullmatch(ref):
        return Wanted(ref, ref)
    refs = _remote_refs(address, ref or "HEAD")
    if ref is None:
        if "HEAD" not in refs:
            raise ConfigurationError(f"{address.url} is empty: it has no default branch.")
        return Wanted(refs["HEAD"], "HEAD")
    names = [name for name in (ref, f"refs/heads/{ref}", f"refs/tags/{ref}") if name in refs]
    if len(names) > 1:
        raise ConfigurationError(
            f"'{ref}' is both a branch and a tag of {address.url}.", remedy=f"Write one of: {', '.join(names)}."
        )
    if names:
        return Wanted(refs.get(f"{names[0]}^{{}}", refs[names[0]]), names[0])
    if _ABBREVIATED.fullmatch(ref):
        return Wanted(None, ref)
    raise ConfigurationError(
        f"{address.url} has no branch or tag '{ref}'.", remedy=f"git ls-remote {address.url} lists them."
    )


def _remote_refs(address: Address, ref: str) -> dict[str, str]:
    try:
        said = git("ls-remote", "--", address.url, ref, f"{ref}^{{}}", env=address.env)
    except GitFailed as error:
        raise unreachable(address, error) from error
    lines = (line.split("\t") for line in said.splitlines() if "\t" in line)
    return {name: commit for commit, name in lines}


def unreachable(address: Address, error: GitFailed) -> ConfigurationError:
    return ConfigurationError(
        f"the repository {address.url} cannot be read: {error.message}",
        remedy="Check the address and that git can reach it; a commit that is already cached needs no network: "
        "name it whole with --source-ref.",
        details=error.details,
    )
