"""`python -m benchflow_adapter_verifiers install`: make both generations' environments now, and print their folder."""

from __future__ import annotations

import sys

from benchflow_adapter_verifiers.environment import GENERATIONS, VerifiersEnvironment
from benchflow_core.errors import BenchflowError


def main() -> int:
    if sys.argv[1:] != ["install"]:
        print("usage: python -m benchflow_adapter_verifiers install", file=sys.stderr)
        return 2
    try:
        for generation in GENERATIONS:
            VerifiersEnvironment(generation).ensure()
    except BenchflowError as error:
        print(f"error: {error.message} {error.remedy or ''}".rstrip(), file=sys.stderr)
        return 1
    print(VerifiersEnvironment("0.4").home.parent)
    return 0


if __name__ == "__main__":
    sys.exit(main())
