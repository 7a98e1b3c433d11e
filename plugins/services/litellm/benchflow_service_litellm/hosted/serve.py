"""Runs the LiteLLM proxy, in LiteLLM's environment. It ends when its stdin does: with BenchFlow, however that ends."""

import os
import sys
import threading


def _end_with_parent() -> None:
    while sys.stdin.buffer.read(4096):
        pass
    os._exit(0)


def main() -> None:
    config, port = sys.argv[1:]
    threading.Thread(target=_end_with_parent, daemon=True).start()
    from litellm.proxy.proxy_cli import run_server

    options = ["--config", config, "--host", "127.0.0.1", "--port", port, "--num_workers", "1", "--telemetry", "False"]
    run_server(options, standalone_mode=False)


if __name__ == "__main__":
    main()
