"""Stepping down: each stage by force, and what it says about itself."""

from __future__ import annotations

import asyncio
import os
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from benchflow_boxkit.interpreter import machine

from benchflow_core.contracts import AccessView, HostEndpoint, ImageRequest, Layer, NetworkPolicy, StartRequest
from benchflow_core.errors import BenchflowError, CapabilityMissing, UsageError
from benchflow_sandbox_local import limits, probe, refusing
from benchflow_sandbox_local.base import build_base
from benchflow_sandbox_local.helper import landlock


async def box_at(open_provider: Any, stage: str, **changes: Any) -> Any:
    provider = open_provider(stage=stage)
    return await provider.start(await provider.prepare(ImageRequest()), StartRequest("test", **changes))


def test_facts_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    best = probe.facts()
    assert best.stage in probe.STAGES and f"stage {best.stage}" in probe.available().reason
    monkeypatch.setenv("BENCHFLOW_LOCAL_STAGE", "3")
    assert "stage 3" in probe.available().reason and probe.available().remedy
    assert "snapshot" not in probe.capabilities() and "network-none" not in probe.capabilities()
    monkeypatch.setenv("BENCHFLOW_LOCAL_STAGE", "2")
    assert "stage 2" in probe.available().reason and "snapshot" in probe.capabilities()


@pytest.mark.parametrize("options", [{"stage": "4"}, {"network": "bridge"}, {"colour": "red"}])
def test_options_are_checked(open_provider: Any, options: dict[str, str]) -> None:
    with pytest.raises(UsageError, match=next(iter(options))):
        open_provider(**options)


async def test_stage_two_has_a_private_root_and_the_hosts_programs_read_only(open_provider: Any) -> None:
    box = await box_at(open_provider, "2")
    script = "echo 1 >/app/x && echo 2 >>/etc/hosts && mkdir /new && python3 -c pass && touch /usr/bin/x"
    done = await box.exec(["sh", "-c", script])
    assert b"Read-only" in done.stderr and done.exit_code != 0
    assert [c.path for c in (await box.snapshot("x")).changes] == ["/app/x", "/etc/hosts", "/new"]


async def test_stage_three_runs_with_rewritten_paths(open_provider: Any, tmp_path: Path) -> None:
    box = await box_at(open_provider, "3")
    assert any("stage 3" in notice for notice in box.info.notices)
    script = tmp_path / "test.sh"
    script.write_text("#!/bin/sh\ncat /app/answer >/logs/verifier/reward.txt\n")
    script.chmod(0o755)
    await box.upload(script, "/tests/test.sh")
    assert (await box.exec(["sh", "-c", "echo 1 >/app/answer; pwd"])).stdout.endswith(b"/root/app\n")
    assert (await box.exec(["/tests/test.sh"])).exit_code == 0
    await box.download("/logs/verifier/reward.txt", tmp_path / "reward")
    assert (tmp_path / "reward").read_text() == "1\n"
    for path in ("/etc/benchflow-test", "/usr/benchflow-test"):
        with pytest.raises(BenchflowError):
            await box.upload(script, path)
    await box.upload(script, "/tests/../../../../../../benchflow-test")
    assert (await box.exec(["test", "-x", "/benchflow-test"])).exit_code == 0
    assert not Path("/benchflow-test").exists(), "on this machine"


async def test_stage_three_follows_a_dockerfile_that_runs_nothing(open_provider: Any, tmp_path: Path) -> None:
    (tmp_path / "say.sh").write_text("#!/bin/sh\necho $TO; cat /work/here/a.txt >/data/b.txt; cat /data/b.txt\n")
    (tmp_path / "a.txt").write_text("A")
    lines = "FROM a AS first\nWORKDIR /work/here\nCOPY a.txt .\nFROM first\nENV TO=/data/x\nCOPY say.sh /data/\n"
    (tmp_path / "Dockerfile").write_text(lines + "COPY --from=first /work/here/a.txt /data/c.txt\n")
    provider = open_provider(stage="3")
    image = await provider.prepare(ImageRequest(tmp_path, tmp_path / "Dockerfile", allow_substitute=True))
    box = await provider.start(image, StartRequest("test"))
    assert box.info.workdir.endswith("/root/work/here")
    done = await box.exec(["sh", "/data/say.sh"])
    assert done.stdout.decode().splitlines()[0].endswith("/root/data/x") and done.stdout.endswith(b"\nA"), done.stderr
    assert (await box.exec(["cat", "a.txt", "/data/c.txt"])).stdout == b"AA"


async def test_stage_three_wants_a_plain_path(open_provider: Any, tmp_path: Path) -> None:
    with pytest.raises(BenchflowError, match="stage 3"):
        await open_provider(stage="3", dir=str(tmp_path / "John's folder")).prepare(ImageRequest())


async def test_stage_three_keeps_to_its_folder(open_provider: Any, tmp_path: Path) -> None:
    if not landlock.version():
        pytest.skip("this kernel has no Landlock")
    (tmp_path / "secret").write_text("of the host")
    box = await box_at(open_provider, "3")
    split = f"'{str(tmp_path)[:3]}' '{str(tmp_path)[3:]}'"  # in two pieces, or /tmp would be rewritten
    done = await box.exec(["python3", "-c", f"print(open({split} '/secret').read())"])
    assert b"PermissionError" in done.stderr and b"of the host" not in done.stdout
    done = await box.exec(["python3", "-c", f"open({split} '/new', 'w')"])
    assert b"PermissionError" in done.stderr
    assert (await box.exec(["python3", "-c", f"import os; os.symlink({split}, 'out')"])).exit_code == 0
    with pytest.raises((BenchflowError, OSError)):
        await box.download("/app/out/secret", tmp_path / "stolen")
    assert not (tmp_path / "stolen").exists()


async def test_stage_three_refuses_what_it_cannot_do(open_provider: Any, tmp_path: Path) -> None:
    provider = open_provider(stage="3")
    image = await provider.prepare(ImageRequest())
    box = await provider.start(image, StartRequest("test"))
    (tmp_path / "Dockerfile").write_text("FROM a\nRUN true\n")
    refused = [
        box.snapshot("x"),
        box.set_network(NetworkPolicy("none")),
        box.listening(),
        box.dial(80),
        box.exec(["true"], user="somebody-else"),
        box.exec(["true"], view=AccessView(hidden=("/app",))),
        provider.start(image, StartRequest("cut-off", network=NetworkPolicy("none"))),
        provider.prepare(ImageRequest(tmp_path, tmp_path / "Dockerfile", allow_substitute=True)),
    ]
    for call in refused:
        with pytest.raises(BenchflowError):
            await call
    assert await box.expose_to_box(HostEndpoint("127.0.0.1", 8080)) == "http://127.0.0.1:8080"


async def test_layers_at_every_stage(open_provider: Any) -> None:
    layer = Layer(
        "tool@1",
        "/opt/benchflow/tool",
        (("sh", "-c", "echo '#!/bin/sh\necho {prefix}' >{prefix}/run; chmod +x {prefix}/run"),),
    )
    for stage in ("1", "2", "3"):
        provider = open_provider(stage=stage)
        image = await provider.prepare(ImageRequest(), (layer,))
        box = await provider.start(image, StartRequest("test"))
        done = await box.exec(["/opt/benchflow/tool/run"])
        assert done.exit_code == 0 and done.stdout.strip(), (stage, done.stderr)
        assert (await box.exec(["sh", "-c", "echo >/opt/benchflow/tool/x"])).exit_code != 0, stage


async def test_the_hosts_network_only_by_option(open_provider: Any) -> None:
    server = await asyncio.start_server(lambda r, w: w.close(), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    provider = open_provider(network="host")
    image = await provider.prepare(ImageRequest())
    reach = ["python3", "-c", f"import socket; socket.create_connection(('127.0.0.1', {port}))"]
    shared = await provider.start(image, StartRequest("shared"))
    assert (await shared.exec(reach)).exit_code == 0
    with pytest.raises(CapabilityMissing):
        await shared.set_network(NetworkPolicy("none"))
    apart = await provider.start(image, StartRequest("apart", network=NetworkPolicy("none")))
    assert (await apart.exec(reach)).exit_code != 0
    server.close()


def test_control_groups_of_version_two(tmp_path: Path) -> None:
    """Read off files as the kernel lays them out; this machine may have version 1."""
    from benchflow_core.contracts import Resources

    hierarchies = limits.Hierarchies({"memory": tmp_path, "pids": tmp_path, "cpu": tmp_path}, unified=True)
    group = limits.make(hierarchies, Resources(cpus=1.5, memory_mb=64, pids=10, storage_mb=5), "box")
    assert group.folders == [str(tmp_path / "benchflow-box")]
    written = {path.name: path.read_text() for path in (tmp_path / "benchflow-box").iterdir()}
    assert written == {
        "memory.max": "67108864", "memory.swap.max": "0", "memory.oom.group": "0", "cpu.max": "150000 100000",
        "pids.max": "11",
    }  # fmt: skip
    assert [notice for notice in group.notices if "storage" in notice]
    (tmp_path / "benchflow-box" / "memory.events").write_text("low 0\noom_kill 3\n")
    assert group.counts() == {"memory": 3, "pids": 0}
    with pytest.raises(CapabilityMissing):
        limits.make(hierarchies, Resources(gpus=1), "box")


def test_settings_of_the_host_that_boxes_get(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from benchflow_sandbox_local.hostenv import host_environment

    (tmp_path / ".config/pip").mkdir(parents=True)
    (tmp_path / ".config/pip/pip.conf").write_text(
        "[global]\nextra-index-url = https://a.invalid/simple\n  https://u:p@b.invalid\n"
    )
    (tmp_path / ".npmrc").write_text("registry=https://npm.invalid/\n//npm.invalid/:_authToken=secret\n")
    env = {
        "HOME": str(tmp_path), "SSL_CERT_FILE": "/etc/hostname", "PIP_CERT": str(tmp_path / ".npmrc"),
        "PIP_INDEX_URL": "https://user:password@index.invalid/", "OPENAI_API_KEY": "secret",
    }  # fmt: skip
    found = host_environment(env)
    expected = {"SSL_CERT_FILE": "/etc/hostname", "npm_config_registry": "https://npm.invalid/"}
    assert found == (expected if os.path.exists("/etc/hostname") else {"npm_config_registry": "https://npm.invalid/"})


@pytest.mark.parametrize(
    ("dockerfile", "named"),
    [
        ("FROM a\nONBUILD RUN x\n", "Dockerfile:2: ONBUILD"),
        ("FROM a\nADD https://example.com/x /x\n", "Dockerfile:2: ADD of a URL"),
        ("FROM a\nCOPY --parents x /x\n", "Dockerfile:2: COPY --parents"),
        ("FROM a\nRUN --mount=id=x,type=secret cat\n", "Dockerfile:2: RUN --mount"),
        ("FROM a\nFOO\n", "Dockerfile:2: 'FOO'"),
        ("FROM --platform=linux/s390x a\n", "Dockerfile:1: FROM --platform=linux/s390x on a linux/"),
        (f"FROM --platform=linux/{machine()}/v8 a\n", ""),
        ("ARG BUILDPLATFORM\nFROM --platform=$BUILDPLATFORM a\n", ""),
        ("FROM a AS never\nONBUILD x\nFROM b\nRUN --mount=target=/x,type=cache --network=default x\n", ""),
    ],
)
def test_what_cannot_be_followed_is_refused_while_planning(tmp_path: Path, dockerfile: str, named: str) -> None:
    (tmp_path / "Dockerfile").write_text(dockerfile)
    request = ImageRequest(tmp_path, tmp_path / "Dockerfile", allow_substitute=True)
    with pytest.raises(BenchflowError, match=named) if named else nullcontext():
        refusing.refuse({}, {}, request)


def test_stage_three_is_planned_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "Dockerfile").write_text("FROM a\nWORKDIR /x\nRUN true\n")
    request = ImageRequest(tmp_path, tmp_path / "Dockerfile", allow_substitute=True)
    if probe.facts().stage < 3:
        with pytest.raises(UsageError, match="BENCHFLOW_LOCAL_STAGE"):
            refusing.refuse({"stage": "3"}, {}, request)
    monkeypatch.setenv("BENCHFLOW_LOCAL_STAGE", "3")
    with pytest.raises(CapabilityMissing, match=r"Dockerfile:3: RUN"):
        refusing.refuse({"stage": "3"}, {}, request)


def test_half_a_base_of_a_killed_run_goes(tmp_path: Path) -> None:
    name = build_base(tmp_path, own=False)
    for half, age in ((".new-old", 700), (".new-young", 10)):
        (tmp_path / "base" / half).mkdir()
        os.utime(tmp_path / "base" / half, (time.time() - age,) * 2)
    assert build_base(tmp_path, own=False) == name
    assert sorted(p.name for p in (tmp_path / "base").iterdir()) == [".new-young", name.partition("/")[2]]


async def test_stage_three_makes_what_a_task_names_the_boxs_own(open_provider: Any, tmp_path: Path) -> None:
    """Whatever this machine has in the same place; only the folders that programs need are the machine's."""
    for host in ("/var/log", "/run"):
        assert Path(host).is_dir()
    box = await box_at(open_provider, "3")
    (tmp_path / "note").write_text("of the task")
    await box.upload(tmp_path / "note", "/var/log/benchflow-note")
    assert (await box.exec(["cat", "/var/log/benchflow-note"])).stdout == b"of the task"
    assert (await box.exec(["sh", "-c", "echo more >/var/log/other"])).exit_code == 0
    await box.download("/var/log/other", tmp_path / "other")
    assert (tmp_path / "other").read_text() == "more\n"
    assert not Path("/var/log/benchflow-note").exists() and not Path("/var/log/other").exists()
    (tmp_path / "Dockerfile").write_text("FROM a\nWORKDIR /run\nCOPY note /run/\n")
    provider = open_provider(stage="3")
    image = await provider.prepare(ImageRequest(tmp_path, tmp_path / "Dockerfile", allow_substitute=True))
    box = await provider.start(image, StartRequest("test"))
    assert (await box.exec(["cat", "note"])).stdout == b"of the task"
    assert not Path("/run/note").exists()
