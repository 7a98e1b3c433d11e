"""Finding the engine, and speaking HTTP to it."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from benchflow_core.contracts import SandboxContext
from benchflow_core.errors import BuildError, ConfigurationError, InfrastructureError
from benchflow_sandbox_docker.engine.api import EngineClient
from benchflow_sandbox_docker.engine.host import EngineAddress, available, find
from benchflow_sandbox_docker.engine.http import EngineError, Http
from benchflow_sandbox_docker.plugin import benchflow_sandbox


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("unix:///run/x.sock", "unix:///run/x.sock"),
        ("tcp://10.0.0.5:2376", "tcp://10.0.0.5:2376"),
        ("tcp://engine", "tcp://engine:2375"),
    ],
)
def test_docker_host_is_honoured(url: str, shown: str) -> None:
    assert str(find({"DOCKER_HOST": url, "DOCKER_CONTEXT": "other"})) == shown


@pytest.mark.parametrize("url", ["ssh://me@host", "npipe:////./pipe/docker_engine", "nonsense"])
def test_what_cannot_be_spoken_to_is_refused_with_a_way_out(url: str) -> None:
    with pytest.raises(ConfigurationError, match="not supported") as caught:
        find({"DOCKER_HOST": url})
    assert url in caught.value.message and "DOCKER_HOST" in str(caught.value.remedy)
    assert not available({"DOCKER_HOST": url}).ok


def test_tls_is_asked_for_by_the_usual_variables(tmp_path: Path) -> None:
    env = {"DOCKER_HOST": "tcp://h:2376", "DOCKER_CERT_PATH": str(tmp_path)}
    assert find(env).certificates == ""
    assert find({**env, "DOCKER_TLS_VERIFY": "1"}).certificates == str(tmp_path)


def _context(folder: Path, name: str, host: str) -> None:
    meta = folder / "contexts/meta" / hashlib.sha256(name.encode()).hexdigest()
    meta.mkdir(parents=True)
    (meta / "meta.json").write_text(json.dumps({"Name": name, "Endpoints": {"docker": {"Host": host}}}))


def test_contexts_are_honoured(tmp_path: Path) -> None:
    _context(tmp_path, "lab", "unix:///run/lab.sock")
    env = {"DOCKER_CONFIG": str(tmp_path)}
    (tmp_path / "config.json").write_text(json.dumps({"currentContext": "lab"}))
    assert find(env).path == "/run/lab.sock"
    assert find({**env, "DOCKER_HOST": "unix:///run/first.sock"}).path == "/run/first.sock"
    with pytest.raises(ConfigurationError, match="gone"):
        find({**env, "DOCKER_CONTEXT": "gone"})


def test_no_engine_is_said_with_a_remedy(tmp_path: Path) -> None:
    found = available({"DOCKER_HOST": f"unix://{tmp_path}/none.sock"})
    assert not found.ok and "none.sock" in found.reason and "DOCKER_HOST" in found.remedy


async def test_provider_without_an_engine_fails_clearly(tmp_path: Path) -> None:
    from benchflow_core.contracts import ImageRequest

    options = {"host": f"unix://{tmp_path}/none.sock"}
    provider = benchflow_sandbox().open(SandboxContext(tmp_path, tmp_path, options=options))
    with pytest.raises(InfrastructureError, match=r"none\.sock"):
        await provider.prepare(ImageRequest(image="x"))
    await provider.close()


def test_unknown_option_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="hots"):
        benchflow_sandbox().open(SandboxContext(tmp_path, tmp_path, options={"hots": "x"}))


class Fake:
    """An engine's socket that gives one prepared answer and keeps what it was sent."""

    def __init__(self, path: Path) -> None:
        self.address = EngineAddress("a test", path=str(path))
        self.answer, self.seen = b"", b""

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.seen = await reader.readuntil(b"\r\n\r\n")
        if b"chunked" in self.seen:
            self.seen += await reader.readuntil(b"0\r\n\r\n")
        writer.write(self.answer)
        await writer.drain()
        writer.close()


@pytest.fixture
async def fake(tmp_path: Path) -> AsyncIterator[Fake]:
    found = Fake(tmp_path / "engine.sock")
    server = await asyncio.start_unix_server(found.handle, found.address.path)
    yield found
    server.close()


async def test_chunked_answers_and_bodies(fake: Fake) -> None:
    async def body() -> AsyncIterator[bytes]:
        yield b"one"
        yield b""
        yield b"two"

    fake.answer = b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n{"a"\r\n3\r\n:1}\r\n0\r\n\r\n'
    answer = await Http(fake.address).call("PUT", "/x y", {"q": {"a": ["b"]}, "none": None, "on": True}, body())
    assert answer.json() == {"a": 1}
    assert fake.seen.startswith(b"PUT /x%20y?q=%7B%22a%22%3A+%5B%22b%22%5D%7D&on=1 HTTP/1.1\r\n")
    assert fake.seen.endswith(b"\r\n\r\n3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n")


async def test_refusals_carry_the_engines_words(fake: Fake) -> None:
    text = b'{"message": "no such thing"}'
    fake.answer = b"HTTP/1.1 404 Not Found\r\nContent-Length: %d\r\n\r\n%s" % (len(text), text)
    with pytest.raises(EngineError, match="no such thing") as caught:
        await Http(fake.address).call("GET", "/x")
    assert caught.value.status == 404 and not caught.value.retryable


async def test_an_engine_that_hangs_up_is_an_infrastructure_failure(fake: Fake) -> None:
    with pytest.raises(InfrastructureError, match="hung up"):
        await Http(fake.address).call("GET", "/x")


async def test_a_build_error_in_the_stream_is_raised_with_the_log(fake: Fake) -> None:
    rows = [{"stream": "Step 1\n"}, {"stream": "oh no\n"}, {"error": "exit code 9"}]
    text = b"".join(json.dumps(row).encode() + b"\r\n" for row in rows)
    fake.answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(text), text)
    with pytest.raises(BuildError, match="exit code 9") as caught:
        await EngineClient(fake.address).build({}, b"")
    assert caught.value.details["log"] == "Step 1\noh no\n"
