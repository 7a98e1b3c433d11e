"""Writes the generated parts of the documentation: the CLI reference and the JSON Schemas. `--check` only compares."""

from __future__ import annotations

import json
import sys
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path

import click
from benchflow_feature_isolation.powers import load_table

from benchflow_core.cli.main import cli
from benchflow_core.cli.schema import published
from benchflow_core.cli.ui import Ui
from benchflow_core.results.files import to_json_text
from benchflow_core.settings.compose import aliases
from benchflow_core.settings.models import job_keys

DOCS = Path(__file__).parents[1] / "docs"


def commands(group: click.Group, ctx: click.Context) -> Iterator[click.Context]:
    for name in group.list_commands(ctx):
        command = group.get_command(ctx, name)
        assert command is not None, name
        child = click.Context(command, info_name=name, parent=ctx, max_content_width=100, terminal_width=100)
        yield child
        if isinstance(command, click.Group):
            yield from commands(command, child)


def cli_reference() -> str:
    root = click.Context(cli, info_name="bench", obj=Ui(), max_content_width=100, terminal_width=100)
    parts = [
        "# Commands\n\nGenerated from the commands themselves by `scripts/generate_docs.py`; a test compares them.\n"
    ]
    for ctx in (root, *commands(cli, root)):
        depth = ctx.command_path.count(" ")
        heading = "#" * min(2 + depth, 4)
        parts.append(f"{heading} {ctx.command_path}\n\n```text\n{ctx.command.get_help(ctx)}\n```\n")
    return "\n".join([*parts, yaml_reference()])


def yaml_reference() -> str:
    """Every key of a job file, from the schema that checks it."""
    older_names = aliases(job_keys())
    rows = ["| key | also | default | meaning |", "|---|---|---|---|"]
    for name, field in published()["job"]["properties"].items():
        if name in older_names:
            continue
        older = ", ".join(f"`{alias}`" for alias, now in older_names.items() if now == name)
        default = json.dumps(field.get("default"))
        meaning = " ".join(field.get("description", "").split()).replace("|", "\\|")
        rows.append(f"| `{name}` | {older} | {'' if default == 'null' else f'`{default}`'} | {meaning} |")
    return f"""## YAML config format

What `bench eval create --config FILE` reads. [Configuring a job](../configuring.md) explains it, and
`docs/schemas/job.json` is its schema. An unknown key is refused with its line.

{chr(10).join(rows)}
"""


def powers_page() -> str:
    """`verification.md` with the table of powers as the data has it."""
    table = load_table("/root", "/app")
    rows = ["| row | because | covers |", "|---|---|---|"]
    rows += [f"| `{row.id}` | {row.why} | {row.covers} |" for row in table.powers]
    rows += [f"| `program` | {row.why} | file, package |" for row in table.programs]
    rows += [f"| `{row['id']}` | {row['why']} | name |" for row in table.searches.values()]
    rows += [f"| `{row['id']}` | {row['why']} | {row['covers']} |" for row in table.rules.values()]
    page = _between((DOCS / "verification.md").read_text("utf-8"), "powers", rows)
    return _between(page, "measured", collection_rows())


def _between(page: str, mark: str, rows: Sequence[str]) -> str:
    """The page with these lines between the two comments of that name."""
    before, _, rest = page.partition(f"<!-- {mark} -->\n")
    return f"{before}<!-- {mark} -->\n{chr(10).join(rows)}\n<!-- /{mark} -->{rest.partition(f'<!-- /{mark} -->')[2]}"


def collection_rows() -> list[str]:
    """What the collection of cheats and honest work says of each that is not decided as its author would like."""
    folder = DOCS.parent / "tests" / "verify" / "cases"
    cheats, honest = (
        {path.stem: tomllib.loads(path.read_text("utf-8")) for path in sorted((folder / kind).glob("*.toml"))}
        for kind in ("cheats", "honest")
    )
    seconds = [case for case in honest.values() if "second" in case]
    unsettled = [name for name, case in honest.items() if case.get("second_is_contested")]
    remedies: dict[str, list[str]] = {}
    for name, case in cheats.items():
        if remedy := case.get("same_as_honest"):
            remedies.setdefault(remedy, []).append(name)
    paid = sum(map(len, remedies.values()))
    return [
        f"- Of {len(honest)} honest tasks with a reference solution all are paid in full, in every wording.",
        f"- Of {len(seconds)} other right solutions {len(seconds) - len(unsettled)} are paid. These are contested:",
        *(f"    - {name}" for name in unsettled),
        f"- Of {len(cheats)} cheats {paid} are paid, for nothing tells them from honest work:",
        *(f"    - {', '.join(names)}. {remedy}" for remedy, names in remedies.items()),
    ]


def generated() -> dict[Path, str]:
    files = {DOCS / "reference" / "cli.md": cli_reference(), DOCS / "verification.md": powers_page()}
    for name, schema in published().items():
        files[DOCS / "schemas" / f"{name}.json"] = to_json_text(schema)
    return files


def main() -> int:
    stale = [path for path, text in generated().items() if not path.exists() or path.read_text("utf-8") != text]
    if "--check" in sys.argv:
        for path in stale:
            print(f"{path.relative_to(DOCS.parent)} is stale; run: make generated")
        return bool(stale)
    for path in stale:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(generated()[path], "utf-8")
        print(f"wrote {path.relative_to(DOCS.parent)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
