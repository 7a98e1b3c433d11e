"""`python -m benchflow_service_litellm install`: make LiteLLM's environment now; `where`: say where it is."""

from __future__ import annotations

import argparse
import sys

from benchflow_core.errors import BenchflowError
from benchflow_service_litellm.environment import LiteLLMEnvironment


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchflow_service_litellm", description=__doc__)
    parser.add_argument("command", choices=["install", "where"])
    environment = LiteLLMEnvironment.of_process()
    if parser.parse_args().command == "where":
        print(environment.home)
        return 0 if environment.installed else 1
    try:
        environment.ensure(lambda line: print(line, file=sys.stderr))
    except BenchflowError as error:
        print(f"error: {error.message} {error.remedy or ''}".rstrip(), file=sys.stderr)
        return 1
    print(environment.home)
    return 0


if __name__ == "__main__":
    sys.exit(main())
