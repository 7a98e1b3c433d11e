"""Parse, read, print."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import click


@click.command("{{name}}")
@click.argument("job_dir", type=click.Path(exists=True, file_okay=False, path_type=Path))
def command(job_dir: Path) -> None:
    """List the rollouts of a job with their rewards."""
    for name, reward in rewards(job_dir):
        click.echo(f"{name}\t{'unscored' if reward is None else reward}")


def rewards(job_dir: Path) -> Iterator[tuple[str, float | None]]:
    for file in sorted(job_dir.rglob("result.json")):
        try:
            found = json.loads(file.read_text(encoding="utf-8")).get("rewards") or {}
        except (OSError, ValueError, AttributeError):
            found = {}
        yield file.parent.name, found.get("reward")
