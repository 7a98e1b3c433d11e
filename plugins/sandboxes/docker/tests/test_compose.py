"""Compose tasks on a real engine: sidecars, their order, files, volumes, names and walls, and what is left of them."""

from __future__ import annotations

import asyncio
import os
import secrets
import textwrap
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from benchflow_core.contracts import ImageRequest, NetworkPolicy, Sandbox, SandboxContext, StartRequest
from benchflow_core.errors import CapabilityMissing, TaskError
from benchflow_sandbox_docker.plugin import benchflow_sandbox
from benchflow_sandbox_docker.provider import DockerProvider

FOUND = benchflow_sandbox().available()
pytestmark = [
    pytest.mark.docker,
    pytest.mark.skipif(not FOUND.ok, reason=f"no Docker engine: {FOUND.reason}"),
    pytest.mark.xdist_group("docker-compose"),
]
Start = Callable[..., Awaitable[Sandbox]]


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest_asyncio.fixture
async def provider(tmp_path: Path, cache: Path) -> AsyncIterator[DockerProvider]:
    (tmp_path / "work").mkdir()
    context = SandboxContext(tmp_path / "work", cache, labels={"job": secrets.token_hex(8)}, env=dict(os.environ))
    opened = benchflow_sandbox().open(context)
    assert isinstance(opened, DockerProvider)
    yield opened
    await opened.close()


@pytest_asyncio.fixture
async def start(provider: DockerProvider, tmp_path: Path) -> Start:
    """A task of this compose file; keywords are files of the environment, `__` for `/`."""
    folder = tmp_path / "task" / "environment"
    folder.mkdir(parents=True)

    async def start_(text: str, files: dict[str, str] | None = None, **changes: Any) -> Sandbox:
        for name, content in (files or {}).items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(content)
        (folder / "docker-compose.yaml").write_text(textwrap.dedent(text))
        dockerfile = folder / "Dockerfile" if (folder / "Dockerfile").exists() else None
        image = await provider.prepare(
            ImageRequest(context=folder, dockerfile=dockerfile, compose=folder / "docker-compose.yaml")
        )
        return await provider.start(image, StartRequest(name="test", **changes))

    return start_


async def out(box: Sandbox, script: str, service: str = "main", **options: Any) -> str:
    done = await box.exec(("sh", "-c", script), service=service, timeout=60, **options)
    return (done.stdout + done.stderr).decode().strip()


async def left(provider: DockerProvider) -> list[str]:
    """What the engine still has of this test's boxes; our interpreter's volume stays for the next."""
    engine, label = provider.engine, "io.benchflow.owner"
    volumes = [row for row in await engine.volumes(label) if not row["Name"].startswith("benchflow-box-")]
    marks = [row["Labels"] for row in (*await engine.containers(label), *await engine.networks(label), *volumes)]
    mine = [mark for mark in marks if provider.context.labels["job"] in mark.get("io.benchflow.labels", "")]
    return [m["io.benchflow.kind"] for m in mine if m["io.benchflow.kind"] in ("box", "network", "volume")]


async def test_services_find_each_other_and_have_what_the_file_gives_them(
    start: Start, provider: DockerProvider
) -> None:
    box = await start(
        """
        services:
          main:
            image: alpine:3.20
            depends_on: {web: {condition: service_healthy}, once: {condition: service_completed_successfully}}
            environment: {A: file, B: file}
            volumes: ["shared:/shared", "./seed:/seed:ro", "./seed/one:/etc/one"]
            hostname: desk
          web:
            image: alpine:3.20
            environment: {WORDS: "${WHO:-nobody} here"}
            entrypoint: [sh, -c]
            command: ['mkdir /tmp/w; echo "$$WORDS" > /tmp/w/index.html; exec httpd -f -p 80 -h /tmp/w']
            healthcheck: {test: "wget -q -O- http://127.0.0.1/", interval: 1m, start_period: 1m}
            networks: {default: {aliases: [site]}}
            tmpfs: /scratch
            user: nobody
            sysctls: {net.ipv4.ip_unprivileged_port_start: 0}
          once:
            image: alpine:3.20
            command: sh -c 'echo made > /shared/made; cat /run/secrets/key >> /shared/made'
            volumes: ["shared:/shared"]
            secrets: [key]
        volumes: {shared: }
        secrets: {key: {file: seed/one}}
        """,
        {"seed/one": "1\n", "seed/two/deep": "2\n"},
        env={"B": "task", "WHO": "Ada"},
        network=NetworkPolicy("none"),
    )
    assert await out(box, "wget -q -O- http://web/; wget -q -O- http://site/") == "Ada here\nAda here"
    assert await out(box, "cat /shared/made /seed/one /seed/two/deep /etc/one") == "made\n1\n1\n2\n1"
    assert await out(box, "echo $A $B; hostname") == "file task\ndesk"
    assert await out(box, "id -un; grep ' /scratch ' /proc/mounts | cut -d' ' -f3", "web") == "nobody\ntmpfs"
    assert 80 in await box.listening(service="web") and 80 not in await box.listening()
    stream = await box.dial(80, service="web")
    await stream.write(b"GET / HTTP/1.0\r\n\r\n")
    answer = b""
    while part := await stream.read():
        answer += part
    assert answer.endswith(b"Ada here\n")
    await stream.close()
    with pytest.raises(CapabilityMissing, match=r"no service 'db'.*There are: main, once, web"):
        await box.exec(("true",), service="db")
    with pytest.raises(CapabilityMissing, match="several services"):
        await box.snapshot("x", keep=True)
    await box.stop()
    assert await left(provider) == []


async def test_main_is_captured_with_its_volumes_and_the_second_box_reaches_the_services_as_they_are(
    start: Start, provider: DockerProvider
) -> None:
    box = await start(
        """
        services:
          main:
            image: alpine:3.20
            volumes: ["mine:/mine", "shared:/shared", "given:/given:ro"]
            tmpfs: /scratch
          web:
            image: alpine:3.20
            command: sh -c 'mkdir -p /tmp/w; echo given > /given/x; echo first > /tmp/w/index.html; httpd -f -p 80 -h /tmp/w'
            volumes: ["shared:/shared", "given:/given"]
            healthcheck: {test: "wget -q -O- http://127.0.0.1/"}
        volumes: {mine: , shared: , given: }
        """,
        network=NetworkPolicy("none"),
    )
    await out(box, "echo a > /mine/a; echo b > /shared/b; echo c > /scratch/c; echo d > /root/d; httpd -p 90 -h /mine")
    await out(box, "echo from memory > /tmp/w/index.html", "web")
    taken = await box.snapshot("x")
    paths = {change.path for change in taken.changes or ()}
    assert {"/mine/a", "/shared/b", "/scratch/c", "/root/d"} <= paths, paths
    await out(box, "echo changed > /mine/a; echo changed > /shared/b")
    first = (await out(box, "grep -w main /etc/hosts")).split()[0]
    second = await provider.start(
        taken.image, StartRequest("second", network=NetworkPolicy("none"), revert=("/root/d", "/mine/a"))
    )
    try:
        assert await out(second, "cat /shared/b /scratch/c /given/x; ls /root/d /mine/a") == (
            "b\nc\ngiven\nls: /root/d: No such file or directory\nls: /mine/a: No such file or directory"
        )
        assert await out(second, "wget -q -O- http://web/") == "from memory"
        assert "changed" not in await out(second, f"timeout 4 wget -q -O- http://{first}:90/a"), "the first box"
        assert await out(box, f"wget -q -O- http://{first}:90/a") == "changed"
        assert await out(second, "echo x > /given/y") != "", "read-only as before"
        assert await out(box, "ls /mine") == "a", "the first has its own"
        with pytest.raises(CapabilityMissing):
            await second.exec(("true",), service="web")
    finally:
        await second.stop()
    assert await out(box, "wget -q -O- http://web/") == "from memory", "services outlive the second box"
    await provider.forget(taken)
    await box.stop()
    assert await left(provider) == []


async def test_a_read_only_service_writes_where_something_is_mounted_and_nowhere_else(start: Start) -> None:
    box = await start(
        """
        services:
          main: {image: alpine:3.20, read_only: true, tmpfs: /scratch}
          web:
            image: alpine:3.20
            read_only: true
            command: sh -c 'for f in /scratch/x /data/x /dev/shm/x /x /etc/x /srv/x; do echo x > $$f; done; sleep 1000'
            tmpfs: /scratch
            volumes: ["data:/data", "./seed:/srv"]
        volumes: {data: }
        """,
        {"seed/one": "1\n"},
    )
    await out(
        box, "until [ -e /srv/x ]; do sleep 0.1; done", "web"
    )  # its last; a busy engine starts the next box sooner
    written = "for f in /scratch/x /data/x /dev/shm/x /x /etc/x /srv/x; do [ -e $f ] && echo $f; done; true"
    assert await out(box, written, "web") == "/scratch/x\n/data/x\n/dev/shm/x\n/srv/x"
    assert "Read-only" in await out(box, "echo x > /etc/x") and await out(box, "echo x > /scratch/x") == ""
    await box.upload(Path(__file__), "/tests/t.py")
    assert await out(box, "echo x > /tests/y; ls /tests") == "t.py\ny", "our own folders are not sealed"


async def test_walls_around_the_services(start: Start, provider: DockerProvider) -> None:
    """Not the host, not another rollout, not the outside; but each other, whatever the policy becomes."""
    text = """
        services:
          main: {image: python:3.12-slim}
          side: {image: python:3.12-slim, command: python -m http.server 80}
    """
    one = await start(text)
    other = await start(text)
    host = await asyncio.start_server(lambda _, w: w.close(), "0.0.0.0", 0)
    port = host.sockets[0].getsockname()[1]
    code = "import socket,sys;socket.create_connection((sys.argv[1],int(sys.argv[2])),3)"

    async def reaches(box: Sandbox, where: str, number: int, service: str = "main") -> bool:
        return (await box.exec(("python3", "-c", code, where, str(number)), timeout=30, service=service)).exit_code == 0

    address = (await out(other, "grep -w side /etc/hosts")).split()[0]
    gateways = [await out(box, "awk '$2==\"00000000\"{print $3}' /proc/net/route") for box in (one, other)]
    gateways = [".".join(str(b) for b in reversed(bytes.fromhex(g))) for g in gateways]
    try:
        for _ in range(100):
            if await reaches(one, "side", 80):
                break
        assert await reaches(one, "side", 80) and await reaches(one, "main", 80) is False
        assert not await reaches(one, address, 80), "another rollout's service"
        for service in ("main", "side"):
            for gateway in gateways:
                assert not await reaches(one, gateway, port, service), f"the host, from {service}"
        await one.set_network(NetworkPolicy("none"))
        assert await reaches(one, "side", 80)
        assert not await reaches(one, gateways[0], port)
        assert (await out(one, "cat /proc/net/route")).count("\n") >= 1
    finally:
        host.close()


async def test_an_allow_list_holds_for_the_outside_and_not_between_services(start: Start) -> None:
    box = await start(
        """
        services:
          main: {image: python:3.12-slim, depends_on: {side: {condition: service_healthy}}}
          side:
            image: python:3.12-slim
            command: python -m http.server 80
            healthcheck: {test: [CMD, python, -c, 'import socket; socket.create_connection(("127.0.0.1", 80))']}
        """,
        network=NetworkPolicy("allowlist", ("named.example",)),
    )
    code = "import sys,urllib.request as u\ntry: print(u.urlopen(sys.argv[1], timeout=20).status)\nexcept OSError as e: print(e)"
    for service in ("main", "side"):
        done = await box.exec(("python3", "-c", code, "http://other.example/"), service=service, timeout=60)
        assert b"403" in done.stdout, done
    done = await box.exec(("python3", "-c", code, "http://side/"), timeout=60)
    assert done.stdout == b"200\n", done


async def test_entrypoint_runs_command_is_replaced(start: Start) -> None:
    dockerfile = (
        'FROM alpine:3.20\nRUN printf \'#!/bin/sh\\necho "entry $@" > /ran\\nexec "$@"\\n\' > /e && chmod +x /e\n'
    )
    box = await start(
        "services: {main: {working_dir: /srv}}", {"Dockerfile": dockerfile + 'ENTRYPOINT ["/e"]\nCMD ["false"]\n'}
    )
    assert await out(box, "until [ -e /ran ]; do :; done; cat /ran; pwd") == "entry sh -c sleep infinity\n/srv"
    snapshot = await box.snapshot("alone")  # a file with one service is one container
    assert "/ran" in {change.path for change in snapshot.changes or ()}


async def test_a_program_without_a_capability_and_one_that_is_started_again(start: Start) -> None:
    box = await start(
        """
        services:
          main: {image: alpine:3.20}
          less: {image: alpine:3.20, cap_drop: [ALL], cap_add: [KILL], command: "sh -c 'grep CapEff /proc/self/status; sleep 999'"}
          again: {image: alpine:3.20, restart: always, command: "sh -c 'echo run; exit 1'"}
        """
    )

    async def printed(service: str, text: bytes) -> bool:
        async with asyncio.timeout(60):
            while text not in await box.logs(service=service):
                await asyncio.sleep(0.05)
        return True

    assert await printed("less", b"CapEff:\t0000000000000020")
    assert await printed("again", b"run\nrun\nrun")


@pytest.mark.parametrize(
    ("service", "message"),
    [
        ("{image: 'alpine:3.20', command: 'sh -c \"echo why; exit 3\"', healthcheck: {test: 'false', interval: 1s}}", "ended before it was healthy with 3: why"),
        ("{image: 'alpine:3.20', command: sleep 99, healthcheck: {test: 'echo no; false', interval: 10ms, timeout: 10s, retries: 1}}", "did not become healthy: no"),
        ("{image: 'alpine:3.20', command: sleep 99}", "waits until 'side' is healthy, which has no healthcheck"),
        ("{image: 'alpine:3.20', user: ghost, command: sleep 99, healthcheck: {test: 'true'}}", "ghost"),
    ],
)  # fmt: skip
async def test_a_service_that_does_not_come_up_is_told_and_nothing_is_left(
    start: Start, provider: DockerProvider, service: str, message: str
) -> None:
    text = f"services: {{main: {{image: 'alpine:3.20', depends_on: {{side: {{condition: service_healthy}}}}}}, side: {service}}}"
    with pytest.raises(Exception, match=message) as failed:
        await start(text)
    assert failed.type.__module__ == TaskError.__module__
    assert await left(provider) == []


async def test_cancelled_in_the_middle_of_a_start_nothing_is_left(start: Start, provider: DockerProvider) -> None:
    text = """
        services:
          main: {image: alpine:3.20, depends_on: {side: {condition: service_healthy}}}
          side: {image: alpine:3.20, command: sleep 999, healthcheck: {test: "false", interval: 1h}, volumes: ["v:/v"]}
        volumes: {v: }
    """
    starting = asyncio.ensure_future(start(text))
    async with asyncio.timeout(60):
        while sorted(await left(provider)) != ["box", "network", "volume"]:
            await asyncio.sleep(0.05)
    starting.cancel()
    await asyncio.gather(starting, return_exceptions=True)
    assert await left(provider) == []
