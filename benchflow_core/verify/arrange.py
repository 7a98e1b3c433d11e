"""A started box on the agent's files, arranged so that what the agent added does not act on the verifier."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from typing import Final

from benchflow_core.contracts.common import private_folder
from benchflow_core.contracts.sandboxes import Sandbox
from benchflow_core.verify import texts
from benchflow_core.verify.asked import asked, asks_to_install
from benchflow_core.verify.boxes import Ready
from benchflow_core.verify.capture import Captured
from benchflow_core.verify.contents import put_text, read_bytes, read_text
from benchflow_core.verify.findings import Finding
from benchflow_core.verify.gitconfig import harmless_git_config, included_files
from benchflow_core.verify.ground import ACCOUNTS, name_of, parent_of
from benchflow_core.verify.guards import Knowledge, concerns_perl, concerns_python, guard_line, lay_out
from benchflow_core.verify.logins import without_power
from benchflow_core.verify.ready import escaped, find_places, make_ready, relink
from benchflow_core.verify.repositories import SYSTEM_CONFIG, user_configs
from benchflow_core.verify.shadows import LIBRARY_FOLDERS, shadowing

__all__ = ["arrange"]

_MOST_INCLUDED: Final = 20


async def arrange(state: Captured, ready: Ready, *, network: bool) -> None:
    """Everything that has to be done in the box; `network`: can it reach anything outside?"""
    box, plan = ready.box, state.plan
    kinds = (("plain", plan.setuid), ("bare", plan.executables), ("closed", plan.opened))
    orders = [f"{what} {escaped(path)}" for what, paths in kinds for path in paths]
    orders += [f"remove {escaped(path)}" for path in await _shadowing(state, box, ready.findings)]
    await _write_back(state, box, ready.findings, network=network)
    folder = f"{parent_of(state.ground.logs).rstrip('/')}/.benchflow-{secrets.token_hex(8)}"
    copies: dict[str, str] = {}
    git = await _git_configs(state, ready, orders, folder, copies)
    images = await _image_configs(state, box)
    orders += await _our_folder(state, ready, images, git, folder, copies)
    await make_ready(box, (state.ground.logs,), ready.workdir, orders)
    if plan.relink:
        agents = {change.path for change in plan.agents}
        author = state.ground.author
        ready.findings += await relink(box, agents, lambda path: asks_to_install(path, author))


async def _shadowing(state: Captured, box: Sandbox, findings: list[Finding]) -> list[str]:
    """What the agent added that hides something of the same name."""
    plan, hidden = state.plan, []
    agents = {change.path for change in plan.agents}
    kinds = (
        ("shadowing-command", plan.commands, state.ground.command_folders, True),
        ("shadowing-library", plan.libraries, LIBRARY_FOLDERS, False),
    )
    for code, candidates, folders, ordered in kinds:
        if not candidates:
            continue
        found = await find_places(box, map(name_of, candidates), folders)
        for path, other in shadowing(candidates, found, agents, ordered=ordered).items():
            findings.append(Finding(code, path, "set-aside", f"it would be taken for {other}"))
            hidden.append(path)
    if plan.modules:
        twins = [twin for path in plan.modules for twin in plan.modules[path]]
        there = {f"/{path.lstrip('/')}" for path in await find_places(box, (t[1:] for t in twins), ("/",))} - agents
        for path, own in plan.modules.items():
            for twin in [twin for twin in own if twin in there][:1]:
                findings.append(Finding("shadowing-module", path, "set-aside", f"it would be taken for {twin}"))
                hidden.append(path)
    return hidden


async def _write_back(state: Captured, box: Sandbox, findings: list[Finding], *, network: bool) -> None:
    """The harmless part of files that were put back as a whole."""
    found = state.texts
    for path, lines in found.path_files.items():
        before = (await read_text(box, path) or "").splitlines()
        if new := [line for line in lines if line not in before]:
            await put_text(box, path, "".join(f"{line}\n" for line in (*before, *new)))
    for path, text in found.logins.items():
        await put_text(box, path, without_power(text, await read_text(box, path) or "", found.effect))
    if found.hosts is not None:
        image = await read_text(box, "/etc/hosts") or ""
        text, left_out = found.hosts, list[str]()
        if network:
            text, left_out = texts.harmless_hosts(text, image, state.ground.author.means_host)
        await put_text(box, "/etc/hosts", text)
        why = "public names are looked up outside the box"
        findings += [Finding("tool-config", f"/etc/hosts: {name}", "set-aside", why) for name in left_out]
    if found.accounts is not None:
        image, ground = await read_text(box, ACCOUNTS) or "", state.ground
        asked = ground.author.instruction_names
        text, changed = texts.harmless_accounts(
            found.accounts, image, lambda name: name in ("root", ground.user) or not asked(name)
        )
        await put_text(box, ACCOUNTS, text)
        why = "an account of the image's, or one with root's rights, that nobody asked for"
        findings += [Finding("tool-config", f"{ACCOUNTS}: {name}", "put-back", why) for name in changed]
    for path, source in state.provided.items():
        if await read_bytes(box, path) != source.read_bytes():
            await box.upload(source, path)


async def _git_configs(
    state: Captured, ready: Ready, orders: list[str], folder: str, copies: dict[str, str]
) -> dict[str, str]:
    """Without the keys that have power; read where no process of the agent's can change them meanwhile.

    Returns those that git is told to read elsewhere. What they take in is copied to our folder, without power, too.
    """
    box, findings, elsewhere = ready.box, ready.findings, dict[str, str]()
    for path in state.plan.git_configs:
        config = await read_text(box, path)
        if config is None:
            orders.append(f"remove {escaped(path)}")
            findings.append(Finding("git-config", path, "set-aside", "there is too much of it to be read"))
            continue
        instead: dict[str, str] = {}
        for name in included_files(config)[:_MOST_INCLUDED]:
            place = re.sub(r"^~(?=/)", state.ground.home, name)
            more = await read_text(box, place if place.startswith("/") else f"{parent_of(path)}/{place}")
            if more is not None:
                copy = f"git-included-{len(copies)}"
                copies[copy], _ = harmless_git_config(more, state.ground.author.says)
                instead[name] = f"{folder}/{copy}"
        text, left_out = harmless_git_config(config, state.ground.author.says, instead)
        if not left_out and not instead:
            continue
        if not left_out:
            left_out = ["include"]
        why = f"{', '.join(sorted(set(left_out)))} would run programs or lead elsewhere in the verifier's git"
        findings.append(Finding("git-config", path, "disarmed", why))
        if path in _steered(state):
            elsewhere[path] = text
        else:
            await put_text(box, path, text)
    return elsewhere


async def _image_configs(state: Captured, box: Sandbox) -> dict[str, str]:
    """The image's version of changed test configuration; then the agent's takes its place again."""
    images: dict[str, str] = {}
    for path, data in state.texts.configs.items():
        images[path] = await read_text(box, path) or ""
        await put_text(box, path, data.decode("utf-8", "surrogateescape"))
    return images


async def _our_folder(
    state: Captured,
    ready: Ready,
    images: Mapping[str, str],
    git: Mapping[str, str],
    folder: str,
    copies: dict[str, str],
) -> list[str]:
    """Upload what the verifier's tools read in place of the agent's configuration; returns what is left to do there."""
    plan, found = state.plan, state.texts
    perl = concerns_perl(plan.agents)
    guarded = perl or concerns_python(plan.agents) or bool(found.editable)
    if not (guarded or plan.env or git or copies):
        return []
    names = {path: f"{number}-{name_of(path)}" for number, path in enumerate(images)}
    copies |= {name: images[path] for path, name in names.items()}
    env = {name: value.format(folder=folder) for name, value in plan.env.items()}
    for variable, paths in (("SYSTEM", {SYSTEM_CONFIG}), ("GLOBAL", git.keys() - {SYSTEM_CONFIG})):
        if found_here := sorted(paths & git.keys()):
            copies[f"git-{variable.lower()}"] = "\n".join(git[path] for path in found_here)
            env[f"GIT_CONFIG_{variable}"] = f"{folder}/git-{variable.lower()}"
    knowledge = None
    if guarded:
        configs = {path: f"{folder}/{name}" for path, name in names.items()}
        wanted = [change.path for change in plan.agents if change.type == "file" and asked(change, state.ground)]
        knowledge = Knowledge(plan.agents, state.ground.python_path, configs, found.editable, wanted)
        env["PYTHONPATH"] = folder
        if perl:  # PERL5LIB may be set anew by the tests
            env["PERL5OPT"] = f"-I{folder} -MBenchflowGuard {ready.env.get('PERL5OPT', '')}".rstrip()
        ready.seen = f"{folder}/seen"
    with private_folder() as staged:
        lay_out(staged, knowledge, copies)
        await ready.box.upload(staged, folder)
    ready.env = {**ready.env, **env}
    orders = [f"open {folder}/own"]
    return [*orders, f"open {folder}/seen", f"python {guard_line(folder)}"] if guarded else orders


def _steered(state: Captured) -> tuple[str, ...]:
    """Configurations that git can be told to read elsewhere; those of repositories it cannot."""
    return SYSTEM_CONFIG, *user_configs(state.ground.home)
