"""`python -m benchflow_testing_clouds daytona`: prints one JSON line with its addresses; ends with its input."""

from __future__ import annotations

import argparse
import asyncio
import importlib
import logging

from benchflow_testing_clouds.backing import Backing
from benchflow_testing_clouds.ledger import Ledger
from benchflow_testing_clouds.serving import serve

VENDORS = {
    "daytona": "benchflow_testing_clouds.daytona.server",
    "e2b": "benchflow_testing_clouds.e2b.server",
    "modal": "benchflow_testing_clouds.modal.server",
}
"""Vendor to the module whose `make(backing, ledger, port)` gives a `CloudServer`."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchflow_testing_clouds", description=__doc__)
    parser.add_argument("vendor", choices=sorted(VENDORS))
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    options = parser.parse_args()
    logging.basicConfig(level=logging.ERROR)
    backing, ledger = Backing(), Ledger()
    server = importlib.import_module(VENDORS[options.vendor]).make(backing, ledger, options.port)
    asyncio.run(serve(server, backing, ledger))


if __name__ == "__main__":
    main()
