"""`python -m benchflow_testing --port 8765`: the local model as a program, controlled by `/__log`, `/__script` …"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
from pathlib import Path

from benchflow_testing.server import LocalModel


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchflow_testing", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one; it is printed as JSON")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--script", type=Path, help='JSON: {"scenarios": {NAME: [STEP, …]}, "default": STEP}')
    parser.add_argument("--models", default="local-model", help="comma-separated ids for GET /models")
    parser.add_argument("--known-only", action="store_true", help="404 for any other model")
    parser.add_argument("--key", help="401 for any other credential")
    parser.add_argument("--log-limit", type=int, default=2000, help="how many requests /__log remembers")
    asyncio.run(_serve(parser.parse_args()))


async def _serve(options: argparse.Namespace) -> None:
    model = LocalModel(
        port=options.port,
        host=options.host,
        models=[name for name in options.models.split(",") if name],
        known_only=options.known_only,
        key=options.key,
        log_limit=options.log_limit,
    )
    if options.script:
        model.answers.load(json.loads(options.script.read_text()))
    stop = asyncio.Event()
    for name in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(name, stop.set)
    async with model:
        print(json.dumps({"port": model.port, "pid": os.getpid()}), flush=True)
        await stop.wait()


if __name__ == "__main__":
    main()
