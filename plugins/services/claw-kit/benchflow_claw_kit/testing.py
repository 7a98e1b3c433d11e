"""For tests of services: a real process on a free port, and the official client pointed at it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["RunningClaw", "google_client", "method_table", "running", "seed_databases"]

ADMIN_TOKEN = "test-admin-token"


def seed_databases(folder: Path, scenarios: Path, services: tuple[str, ...] = ("gmail", "gcal")) -> None:
    """Make `<service>.db` in a folder from `<service>.scenario.json` of another, with the installed programs."""
    for name in services:
        program = Path(sys.executable).with_name(f"claw-{name}")
        argv: list[Any] = [
            program,
            "--db",
            folder / f"{name}.db",
            "seed",
            "--scenario",
            scenarios / f"{name}.scenario.json",
        ]
        subprocess.run(argv, check=True, capture_output=True)


@dataclass
class RunningClaw:
    url: str
    db: Path
    process: subprocess.Popen[bytes]

    def ask(
        self,
        verb: str,
        path: str,
        body: Any = None,
        token: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> tuple[int, Any, dict[str, str]]:
        """Status, JSON (or bytes) and headers, without any client's manners. `body` is bytes or a JSON value."""
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        sent = {"Content-Type": "application/json"} if data is not None else {}
        sent |= {"Authorization": f"Bearer {token}"} if token else {}
        request = urllib.request.Request(self.url + path, data, {**sent, **(headers or {})}, method=verb)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, _value(answer.read()), dict(answer.headers)
        except urllib.error.HTTPError as error:
            return error.code, _value(error.read()), dict(error.headers)

    def admin(self, verb: str, name: str, body: Any = None) -> Any:
        status, value, _ = self.ask(verb, f"/_admin/{name}", body, ADMIN_TOKEN)
        assert status == 200, (status, value)
        return value


def _value(data: bytes) -> Any:
    try:
        return json.loads(data)
    except ValueError:
        return data


@contextmanager
def running(module: str, db: Path, *options: str, seed: tuple[str, int] | None = None) -> Iterator[RunningClaw]:
    """`module` has `main()`: the service's console script, run as a process of its own."""
    program = [sys.executable, "-c", f"from {module} import main; main()", "--db", str(db)]
    if seed:
        subprocess.run([*program, "seed", "--scenario", seed[0], "--seed", str(seed[1])], check=True, timeout=60)
    env = {**os.environ, "CLAW_ADMIN_TOKEN": ADMIN_TOKEN}
    log = db.with_suffix(".log")
    with log.open("wb") as sink:
        process = subprocess.Popen([*program, "serve", "--port", "0", *options], env=env, stderr=sink)
    try:
        url = _address(process, log)
        _wait(url + "/health")
        yield RunningClaw(url, db, process)
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    if "Traceback" in log.read_text():
        raise AssertionError(f"{module} met an error of its own:\n{log.read_text()[-4000:]}")


def _address(process: subprocess.Popen[bytes], log: Path) -> str:
    for _ in range(3000):
        text = log.read_text()
        if "http://" in text:
            return "http://" + text.split("http://")[1].split(",")[0]
        if process.poll() is not None:
            raise AssertionError(f"it did not start: {text}")
        time.sleep(0.01)
    raise AssertionError("it did not start")


def _wait(url: str) -> None:
    for _ in range(600):
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except OSError:
            time.sleep(0.02)
    raise AssertionError(f"{url} does not answer")


def document(name: str, version: str) -> dict[str, Any]:
    """The discovery document that google-api-python-client carries."""
    import googleapiclient

    folder = Path(googleapiclient.__file__).parent / "discovery_cache" / "documents"
    value: dict[str, Any] = json.loads((folder / f"{name}.{version}.json").read_text())
    return value


def google_client(name: str, version: str, url: str, token: str | None = None) -> Any:
    """The official client. Its document says another host: `api_endpoint` moves calls but not uploads and batches."""
    from googleapiclient.discovery import build_from_document
    from googleapiclient.http import build_http

    doc = document(name, version)
    doc["rootUrl"] = doc["baseUrl"] = url + "/"
    doc["baseUrl"] += doc["servicePath"]
    doc.pop("mtlsRootUrl", None)
    if token is None:
        return build_from_document(doc, http=build_http())
    from google.oauth2.credentials import Credentials

    return build_from_document(doc, credentials=Credentials(token))  # type: ignore[no-untyped-call]


def method_table(
    contract: Mapping[str, Any], answered: Mapping[str, Any], notes: Mapping[str, str], seen: Mapping[str, str]
) -> str:
    """A page's table of every method of the real API: does it answer, where its effect is seen, and if not, why."""
    lines = ["| method | request | answers | seen by |", "|---|---|---|---|"]
    for id, facts in sorted(contract.items()):
        yes = "yes" if id in answered else note(notes, id)
        lines.append(f"| `{id}` | `{facts['verb']} {facts['path']}` | {yes} | {seen.get(id, '')} |")
    count = sum(id in answered for id in contract)
    return f"{count} of {len(contract)} methods answer.\n\n" + "\n".join(lines) + "\n"


def note(notes: Mapping[str, str], id: str) -> str:
    """The most specific word there is about a method."""
    found = [name for name in notes if id == name or id.startswith(name + ".")]
    return notes[max(found, key=len)] if found else "no"
