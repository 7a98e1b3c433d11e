"""The command line that every claw service has: serve, seed, snapshot, diff, dump, page, token, scenarios."""

from __future__ import annotations

import argparse
import json
import os
import socket
import sys
from collections.abc import Sequence
from pathlib import Path

from benchflow_claw_kit.service import Service
from benchflow_claw_kit.store import Store, StoreError

__all__ = ["run"]


def run(service: Service, argv: Sequence[str] | None = None) -> int:
    """The console script of a service is `sys.exit(run(SERVICE))`. Bad input: one line on stderr, and 2."""
    options = _parser(service).parse_args(argv)
    try:
        code: int = options.act(service, options) or 0
        return code
    except StoreError as error:
        print(f"{service.program}: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        return 130


def _parser(service: Service) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=service.program, description=service.summary)
    parser.add_argument("--db", default=f"{service.name}.db", metavar="FILE", help="the state (default: %(default)s)")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    serve = commands.add_parser("serve", help="answer on a port")
    serve.add_argument("--host", default="127.0.0.1")
    serve.add_argument("--port", type=_port, default=service.port)
    serve.add_argument("--no-mcp", action="store_true", help="no MCP server at /mcp")
    serve.add_argument("--require-auth", action="store_true", help="401 without a bearer token")
    serve.add_argument(
        "--clock", choices=("world", "real"), default="world", help="a seeded world's own time, or the wall clock"
    )
    serve.set_defaults(act=_serve)

    seed = commands.add_parser("seed", help="replace the state by a scenario")
    seed.add_argument(
        "--scenario", required=True, help=f"a JSON file, or one of: {', '.join(sorted(service.scenarios))}"
    )
    seed.add_argument("--seed", type=int, default=0, metavar="N")
    seed.add_argument("--now", metavar="TIME", help="when the world begins, e.g. 2026-03-02T09:00:00Z")
    seed.set_defaults(act=_seed)

    snapshot = commands.add_parser("snapshot", help="copy the state, also while it is served")
    snapshot.add_argument("--out", required=True, metavar="FILE")
    snapshot.set_defaults(act=_snapshot)

    diff = commands.add_parser("diff", help="what changed since a snapshot")
    diff.add_argument("--base", required=True, metavar="FILE")
    diff.add_argument("--json", action="store_true", help="whole rows as JSON, not one line per row")
    diff.set_defaults(act=_diff)

    commands.add_parser("dump", help="the whole state as JSON").set_defaults(act=_dump)
    commands.add_parser("page", help="the state as an HTML page").set_defaults(act=_page)
    commands.add_parser("scenarios", help="the built-in scenarios").set_defaults(act=_scenarios)

    token = commands.add_parser("token", help="make a bearer token for a user")
    token.add_argument("--user", required=True)
    token.add_argument("--scopes", help="separated by spaces; without, everything is allowed")
    token.set_defaults(act=_token)
    return parser


def _port(text: str) -> int:
    if not text.isdigit() or not 0 <= int(text) <= 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port: 0 to 65535")
    return int(text)


def _open(service: Service, options: argparse.Namespace, clock: str | None = None) -> Store:
    return Store(options.db, service.schema, clock)


def _existing(options: argparse.Namespace) -> None:
    if not Path(options.db).is_file():
        raise StoreError(f"{options.db}: no such file")


def _serve(service: Service, options: argparse.Namespace) -> int:
    from benchflow_claw_kit.server import ClawApp, serve

    store = _open(service, options, options.clock)
    with store.transaction():
        service.prepare(store)
    listener = _listen(options.host, options.port)
    app = ClawApp(service, store, mcp=not options.no_mcp, admin_token=admin_token(), require_auth=options.require_auth)
    host, port = listener.getsockname()[:2]
    print(f"{service.program}: listening on http://{host}:{port}, state in {options.db}", file=sys.stderr, flush=True)
    serve(app, listener)
    return 0


def _listen(host: str, port: int) -> socket.socket:
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Connections inherit it: without, the end of an answer waits some 40 ms for a client that is slow to confirm.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        listener.bind((host, port))
        listener.listen(512)
        return listener
    except OSError as error:
        raise StoreError(f"cannot listen on {host}:{port}: {error.strerror or error}") from None


def admin_token() -> str | None:
    """From CLAW_ADMIN_TOKEN, else from the file named by CLAW_ADMIN_TOKEN_FILE, else none and no admin channel."""
    token = os.environ.get("CLAW_ADMIN_TOKEN", "").strip()
    name = os.environ.get("CLAW_ADMIN_TOKEN_FILE", "")
    if not token and name:
        try:
            token = Path(name).read_text().strip()
        except OSError as error:
            raise StoreError(f"CLAW_ADMIN_TOKEN_FILE: {name}: {error.strerror}") from None
        if not token:
            raise StoreError(f"CLAW_ADMIN_TOKEN_FILE: {name} is empty")
    return token or None


def _seed(service: Service, options: argparse.Namespace) -> None:
    from benchflow_claw_kit.seeding import seed

    seed(service, _open(service, options), options.scenario, options.seed, options.now)
    (Path(options.db + ".snapshots") / "initial.db").unlink(missing_ok=True)


def _snapshot(service: Service, options: argparse.Namespace) -> None:
    _existing(options)
    _open(service, options).backup(options.out)


def _dump(service: Service, options: argparse.Namespace) -> None:
    from benchflow_claw_kit.changes import dump_file

    print(json.dumps(dump_file(options.db, service), indent=1, sort_keys=True, ensure_ascii=False))


def _diff(service: Service, options: argparse.Namespace) -> None:
    from benchflow_claw_kit.changes import diff, dump_file

    found = diff(dump_file(options.base, service), dump_file(options.db, service), service.kinds)
    if options.json:
        print(json.dumps(found, indent=1, sort_keys=True, ensure_ascii=False))
        return
    for mark, name in (("+", "added"), ("-", "removed"), ("~", "changed")):
        for entry in found[name]:
            fields = f"  {', '.join(entry['fields'])}" if name == "changed" else ""
            print(f"{mark} {entry['kind']} {entry['id']}{fields}")


def _page(service: Service, options: argparse.Namespace) -> None:
    from benchflow_claw_kit.page import state_page

    _existing(options)
    print(state_page(service, _open(service, options)))


def _scenarios(service: Service, options: argparse.Namespace) -> None:
    for name, build in sorted(service.scenarios.items()):
        print(f"{name:16} {(build.__doc__ or '').strip().splitlines()[0] if build.__doc__ else ''}".rstrip())


def _token(service: Service, options: argparse.Namespace) -> None:
    import secrets

    store = _open(service, options)
    token = "ya29." + secrets.token_urlsafe(32)
    with store.transaction():
        store.insert("_tokens", token=token, user=options.user, scopes=options.scopes)
    print(token)
