"""What a box is kept from, beyond what the conformance suite looks at."""

from __future__ import annotations

import asyncio
import json
import shutil
import socket
import subprocess
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from benchflow_core.contracts import AccessView, NetworkPolicy, Resources, Sandbox, StartRequest
from benchflow_core.errors import CapabilityMissing, SandboxStartError
from benchflow_sandbox_docker.container import ContainerPlan
from benchflow_sandbox_docker.engine.api import EngineClient
from benchflow_sandbox_docker.interpreter import PYTHON

pytestmark = pytest.mark.docker

Start = Callable[..., Awaitable[Sandbox]]

STATUS = "grep -E '^(CapEff|CapBnd|CapPrm|CapInh|CapAmb|NoNewPrivs|Seccomp):' /proc/self/status"
NET_ADMIN, NET_RAW, SYS_ADMIN, SYS_PTRACE = 12, 13, 21, 19

ATTACK_FIRST_PROCESS = """
import ctypes, os, signal
found = []
for number in (signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM, signal.SIGCHLD):
    os.kill(1, number)
for path in ("/proc/1/mem", "/proc/1/environ", "/proc/1/maps"):
    try:
        if open(path, "rb").read(1):
            found.append(path)
    except OSError:
        pass
libc = ctypes.CDLL(None)
if libc.ptrace(16, 1, 0, 0) == 0:
    found.append("ptrace")
for path in ("/opt/benchflow/box/code/benchflow_sandbox_docker/inside/main.py", "/opt/benchflow/box/x"):
    try:
        open(path, "w")
        found.append(path)
    except OSError:
        pass
print(found)
"""

ROUTES = """
import socket, sys
def reach(address, port):
    try:
        socket.create_connection((address, port), timeout=3).close()
        return True
    except OSError as error:
        return error.errno
for row in sys.argv[1:]:
    print(row, reach(row, 22))
try:
    socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    print("raw")
except OSError:
    pass
netlink = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
"""


async def test_programs_have_no_power_beyond_the_box(start: Start) -> None:
    box = await start()
    done = await box.exec(["sh", "-c", STATUS])
    rows = dict(line.split(":\t") for line in done.stdout.decode().splitlines())
    for name in ("CapEff", "CapBnd", "CapPrm", "CapInh", "CapAmb"):
        for capability in (NET_ADMIN, NET_RAW, SYS_ADMIN, SYS_PTRACE):
            assert not int(rows[name], 16) >> capability & 1, f"{name} has capability {capability}"
    assert rows["NoNewPrivs"] == "1"
    assert rows["Seccomp"] == "2"


async def test_root_in_the_box_has_no_hold_on_its_first_process(start: Start) -> None:
    box = await start()
    done = await box.exec([PYTHON, "-c", ATTACK_FIRST_PROCESS])
    assert done.stdout == b"[]\n", done
    assert (await box.exec(["echo", "alive"])).stdout == b"alive\n"


async def test_loader_of_our_python_takes_nothing_from_the_box(start: Start) -> None:
    """A preload list in the box must not get code into what we start there."""
    box = await start()
    await box.exec(["sh", "-c", "echo /no/such/library.so >/etc/ld.so.preload"])
    assert b"cannot be preloaded" in (await box.exec(["true"])).stderr, "programs of the box do read it"
    done = await box.exec([f"{PYTHON}3.invalid"])
    assert done.exit_code == 127
    snapshot = await box.snapshot("preload")
    assert {change.path for change in snapshot.changes or ()} >= {"/etc/ld.so.preload"}
    copy = await start(snapshot.image)
    assert b"preloaded" not in await copy.logs(), "the first process of a new box was asked to preload it"


async def test_bridge_gateway_and_neighbours_are_out_of_reach(start: Start, engine: EngineClient) -> None:
    network = await engine.network("bridge")
    assert network is not None
    config = network["IPAM"]["Config"][0]
    gateway = config.get("Gateway") or config["Subnet"].partition("/")[0].rpartition(".")[0] + ".1"
    box = await start(network=NetworkPolicy("public"))
    done = await box.exec([PYTHON, "-c", ROUTES, gateway, "169.254.169.254"], timeout=30)
    assert done.stdout.decode().splitlines() == [f"{gateway} 13", "169.254.169.254 13"], "EACCES: a rule forbids it"


async def test_an_address_that_the_host_gets_later_is_out_of_reach_too(
    start: Start, engine: EngineClient, mark: str
) -> None:
    """Somebody makes a network while a box runs: its gateway is this machine."""
    if not engine.address.local:
        pytest.skip("needs an engine on this machine")
    box = await start(network=NetworkPolicy("public"))
    name = f"benchflow-test-{mark}"
    await engine.http.call("POST", "/networks/create", None, {"Name": name, "Driver": "bridge"})
    try:
        gateway = (await engine.network(name) or {})["IPAM"]["Config"][0]["Gateway"]
        with socket.create_server((gateway, 0)) as server:
            probe = f"import socket; socket.create_connection(('{gateway}', {server.getsockname()[1]}), 5)"
            done = await box.exec([PYTHON, "-c", probe], timeout=30)
        assert b"Permission denied" in done.stderr, done
    finally:
        await engine.remove_network(name)


async def test_a_box_that_may_mount_lets_no_program_do_so(start: Start, engine: EngineClient) -> None:
    """Views need it for the first process alone; a box that is started without them has nothing of it."""
    tries = "for c in 'unshare -m' 'unshare -U' 'unshare -r' 'mount -t tmpfs x'; do $c /mnt 2>&1; done"
    for views in (True, False):
        box = await start(access_views=views)
        added = (await engine.inspect(box.info.id))["HostConfig"]["CapAdd"]
        assert ("SYS_ADMIN" in added or "CAP_SYS_ADMIN" in added) is views
        output = (await box.exec(["sh", "-c", f"{tries}; true"])).stdout.decode()
        assert output.count("not permitted") + output.count("denied") + output.count("not found") == 4, output
        assert "not permitted" in output
    with pytest.raises(CapabilityMissing, match="without access views"):
        await box.exec(["true"], view=AccessView(hidden=("/root",)))


async def test_a_limited_program_finds_no_way_around_its_view(start: Start) -> None:
    box = await start()
    await box.exec(["sh", "-c", "mkdir /secret; echo secret >/secret/s; echo old >/f; mkdir /w; chown 1000 /f /w"])
    beside = await box.spawn(["sleep", "100"])
    view = AccessView(read_only=("/",), hidden=("/secret",), writable=("/w",))
    script = """
        for p in /proc/[0-9]*; do cat $p/root/secret/s $p/cwd/secret/s 2>/dev/null; done; cat /secret/s
        nsenter -t PID -m cat /secret/s; umount /secret; mknod /w/disk b 8 0
        chmod 777 /f; chown 1 /f; touch -d 2000-01-01 /f; ln /f /w/hard; mv /f /g; echo new > /f; echo fine > /w/o
    """.replace("PID", str(beside.pid))
    for user in (None, "1000"):
        done = await box.exec(["sh", "-c", script], view=view, user=user, timeout=30)
        assert b"secret\n" not in done.stdout, done
    after = await box.exec(["sh", "-c", "cat /f /secret/s; stat -c '%a %u' /f; ls /w; cat /w/o"])
    assert after.stdout == b"old\nsecret\n644 1000\no\nfine\n", after


async def test_no_secret_is_in_what_the_engine_knows(start: Start, engine: EngineClient) -> None:
    box = await start(env={"VISIBLE": "yes"})
    await box.exec(["true"], env={"API_KEY": "s3cret-value"})
    process = await box.spawn(["cat"], env={"API_KEY": "s3cret-value"})
    known = json.dumps(await engine.inspect(box.info.id))
    snapshot = await box.snapshot("secrets")
    known += json.dumps(await engine.image(str(snapshot.image.meta["image"])))
    assert "s3cret-value" not in known
    await process.kill()


async def test_a_box_that_is_stopped_is_killed_at_once(start: Start) -> None:
    """Nothing waits for a stop grace: a program that ignores every signal is no reason to."""
    box = await start()
    await box.spawn(["sh", "-c", "trap '' TERM HUP INT; while :; do sleep 1; done"])
    began = time.monotonic()
    await box.stop()
    assert time.monotonic() - began < 8, "engines wait ten seconds before they kill"


async def test_entry_point_runs_and_its_output_is_the_log(provider, start: Start, task) -> None:  # type: ignore[no-untyped-def]
    files = {"entry.sh": '#!/bin/sh\necho "entry: $*"; echo set-up >/etc/made; exec "$@"\n'}
    dockerfile = 'FROM debian:bookworm-slim\nCOPY --chown=0:0 entry.sh /entry.sh\nRUN chmod +x /entry.sh\nENTRYPOINT ["/entry.sh"]\nCMD ["never"]\n'
    image = await provider.prepare(task(dockerfile, files))
    box = await provider.start(image, StartRequest(name="entry"))
    done = await box.exec(["sh", "-c", "until [ -s /etc/made ]; do sleep 0.1; done; cat /etc/made"], timeout=30)
    assert done.stdout == b"set-up\n"
    assert b"entry: sh -c sleep infinity" in await box.logs()
    assert await box.processes(), "what it started goes on"


def test_host_has_no_leftover_of_these_rules() -> None:
    """The rules live in the boxes' own network namespaces, never in the host's."""
    if shutil.which("ip") is None:
        pytest.skip("iproute2 is not installed here")
    done = subprocess.run(["ip", "rule"], capture_output=True, text=True, check=False)
    assert "prohibit" not in done.stdout


RULES = """
import socket, struct
s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
s.send(struct.pack("=IHHIIBBBBBBBBI", 28, 34, 0x301, 1, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0))
data = s.recv(1 << 20)
while data:
    size, kind = struct.unpack_from("=IH", data)
    if kind != 32:
        break
    row, at = {}, 28
    while at < size:
        n, t = struct.unpack_from("=HH", data, at)
        row[t] = data[at + 4:at + n]
        at += (n + 3) & ~3
    port = struct.unpack("=HH", row[24])[0] if 24 in row else 0
    if 1 in row:
        print("%d:%s:%d" % (struct.unpack("=I", row[6])[0], socket.inet_ntoa(row[1]), port))
    data = data[(size + 3) & ~3:]
"""
"""Lists this namespace's routing rules: priority, destination, port."""


async def test_resolver_at_a_forbidden_address_answers_names_only(start: Start) -> None:
    """The rule for port 53 comes before the one that forbids the address."""
    box = await start(network=NetworkPolicy("public"))
    show = "cat /etc/resolv.conf; cat /proc/net/route"
    servers = [
        line.split()[1]
        for line in (await box.exec(["sh", "-c", show])).stdout.decode().splitlines()
        if line.startswith("nameserver")
    ]
    if not servers or servers[0].startswith("127."):
        pytest.skip("the engine answers names inside the box")
    done = await box.exec([PYTHON, "-c", RULES])
    rules = done.stdout.decode().split()
    assert f"90:{servers[0]}:53" in rules and "100:169.254.0.0:0" in rules, rules


async def test_our_own_helpers_are_never_taken_for_programs_of_the_box(start: Start) -> None:
    """Each command has a keeper, which is still about to end when the command is done."""
    box = await start()
    for _ in range(40):
        await box.exec(["true"])
        assert await box.processes() == []


async def test_a_gpu_is_asked_for_and_its_absence_is_said(start: Start, engine: EngineClient, mark: str) -> None:
    wanted = Resources(gpus=2, gpu_types=("H100",))
    plan = ContainerPlan("debian:bookworm-slim", resources=wanted)
    created = await engine.create(f"benchflow-test-{mark}", plan.create_config())
    try:
        (asked,) = (await engine.inspect(created))["HostConfig"]["DeviceRequests"]
        assert asked["Count"] == 2 and asked["Capabilities"] == [["gpu"]]
    finally:
        await engine.remove(created)
    if not await asyncio.to_thread(Path("/dev/nvidia0").exists):
        with pytest.raises(SandboxStartError, match="cannot give 2 GPUs") as refused:
            await start(resources=wanted)
        assert not refused.value.retryable


async def test_more_processors_than_there_are_is_no_limit_and_said(start: Start) -> None:
    box = await start(resources=Resources(cpus=10_000))
    assert box.info.notices == ("10000 CPUs were asked for, more than the engine's machine has: not limited",)


CONNECT = """
import socket, sys
with socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=5) as proxy:
    proxy.sendall(b"CONNECT localhost:9 HTTP/1.1\\r\\n\\r\\n")
    print(proxy.recv(64).split()[1].decode())
"""


async def test_the_images_variables_do_not_say_where_the_allow_list_connects(start: Start) -> None:
    """Its proxy runs on this host: it goes by the host's own, or a task could send it anywhere."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        box = await start(network=NetworkPolicy("allowlist", ("localhost",)), env={"https_proxy": url})
        shown = box._network.env["http_proxy"]
        asked = await box.exec((PYTHON, "-c", CONNECT, shown.rpartition(":")[2]))
        assert asked.stdout.strip() in (b"403", b"502"), asked
        with pytest.raises(BlockingIOError):
            listener.accept()
