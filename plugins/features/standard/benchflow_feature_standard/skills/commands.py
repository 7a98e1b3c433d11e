"""`bench skills`: see, install and evaluate skills."""

from __future__ import annotations

from pathlib import Path

import click

from benchflow_core.contracts import CommandContext
from benchflow_feature_standard.skills.evaluate import skill_eval
from benchflow_feature_standard.skills.folders import install_skill, read_skills

__all__ = ["skills"]

_PLACE = "~/.agents/skills"


@click.group("skills", invoke_without_command=True)
@click.option("--install", "word", metavar="OWNER/REPO@NAME", hidden=True, help="The same as skills install.")
@click.pass_context
def skills(ctx: click.Context, word: str | None) -> None:
    """See, install and evaluate skills: folders with a SKILL.md that agents read."""
    if ctx.invoked_subcommand is not None:
        return
    if word:
        ctx.invoke(install, word=word, target=_PLACE, ref=None, force=False)
    else:
        ctx.invoke(list_skills, folders=(), more=())


@skills.command("list")
@click.argument("folders", nargs=-1, type=click.Path(exists=True, file_okay=False))
@click.option("--dir", "more", multiple=True, type=click.Path(exists=True, file_okay=False), hidden=True)
@click.pass_obj
def list_skills(ui: CommandContext, folders: tuple[str, ...], more: tuple[str, ...]) -> None:
    """Skills in folders; without any, in the places agents look."""
    named = (*folders, *more) or (_PLACE, "~/.claude/skills", "skills")
    places = [Path(name).expanduser() for name in named]
    found = [skill for place in places if place.is_dir() for skill in read_skills(place)]
    rows = [[s.name, s.description, str(s.folder)] for s in found]
    value = [{"name": s.name, "description": s.description, "path": str(s.folder)} for s in found]
    ui.emit(value, lambda: ui.table(["NAME", "DESCRIPTION", "FOLDER"], rows))


@skills.command("install")
@click.argument("word", metavar="OWNER/REPO@NAME")
@click.option("--to", "target", type=click.Path(), default=_PLACE, show_default=True, help="The folder to put it in.")
@click.option("--ref", help="Branch, tag or commit.")
@click.option("--force", is_flag=True, help="Replace one that is there.")
@click.pass_obj
def install(ui: CommandContext, word: str, target: str, ref: str | None, force: bool) -> None:
    """Bring a skill from a repository."""
    skill = install_skill(word, Path(target).expanduser(), lambda uri: ui.core().fetch(uri, ref), force=force)
    value = {"name": skill.name, "path": str(skill.folder)}
    ui.emit(value, lambda: ui.out(f"{skill.name} is in {skill.folder}"))


skills.add_command(skill_eval)
