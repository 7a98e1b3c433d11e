"""The command that makes Harbor tasks of a clone of ProgramBench: `python -m benchmarks.programbench.main --help`."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from benchmarks.programbench.benchflow import IMAGE_TAG, ConversionError, Options, convert_all

BLOBS = "PROGRAMBENCH_BLOB_DIR"
"""ProgramBench's own variable for test archives at hand."""


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.programbench.main", description="Make Harbor tasks of a clone of ProgramBench."
    )
    parser.add_argument("--programbench-dir", type=Path, required=True, help="the clone")
    parser.add_argument("--output-dir", type=Path, required=True, help="where the tasks go, a folder each")
    parser.add_argument("--task-ids", nargs="+", default=[], metavar="ID", help="only these; without it all")
    parser.add_argument(
        "--replace", action="store_true", help="write tasks that are there anew; without it they are kept"
    )
    parser.add_argument("--blobs", type=Path, help=f"test archives to put into the tasks; also from {BLOBS}")
    parser.add_argument("--sources", type=Path, help="original sources for the reference solutions, <task id>/ each")
    parser.add_argument("--image-tag", default=IMAGE_TAG, help="tag of ProgramBench's images (%(default)s)")
    return parser


def main(argv: list[str] | None = None) -> int:
    asked = _arguments().parse_args(argv)
    blobs = asked.blobs or (Path(os.environ[BLOBS]) if os.environ.get(BLOBS) else None)
    options = Options(asked.image_tag, _home(blobs), _home(asked.sources), asked.replace)
    output = asked.output_dir.expanduser()
    try:
        written, kept = convert_all(asked.programbench_dir.expanduser(), output, asked.task_ids, options)
    except ConversionError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(f"{len(written)} written to {output}" + (f", {len(kept)} kept (--replace writes them anew)" if kept else ""))
    return 0


def _home(path: Path | None) -> Path | None:
    return path.expanduser() if path else None


if __name__ == "__main__":
    sys.exit(main())
