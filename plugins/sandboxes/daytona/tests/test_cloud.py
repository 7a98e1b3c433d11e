"""Daytona: the cases of every cloud, and what is its own."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from benchflow_testing_clouds.cases import CloudCase, CloudFaults, CloudRollouts, Refusal, Wire
from benchflow_testing_clouds.cases.wire import Open
from benchflow_testing_clouds.control import Remote

from benchflow_core.contracts import ImageRef, Resources, SandboxProvider, StartRequest
from benchflow_core.errors import CredentialRefused, SandboxQuotaExceeded, SandboxRateLimited

ROOT = Path(__file__).parents[4]
TERMINAL = "GET /process/pty/create-connect"


def login(secrets: dict[str, str]) -> str:
    """As `daytona login` leaves it; the address comes from the environment."""
    profile = {"id": "p", "name": "mine", "api": {"key": secrets["DAYTONA_API_KEY"]}}
    return json.dumps({"activeProfile": "p", "profiles": [profile]})


WIRE = Wire(
    name="daytona",
    package="benchflow_sandbox_daytona",
    create="POST /sandbox",
    output=TERMINAL,
    box={"POST /sandbox": 1, TERMINAL: 1, "DELETE /sandbox/{sandboxIdOrName}": 1},
    job={"GET /sandbox": 1, "GET /snapshots/{id}": 1},
    cuts=({"route": TERMINAL, "after_bytes": 300_000}, {"route": TERMINAL, "after_bytes": 500_000}),
    refused_when_dead=TERMINAL,
    refusals=(
        Refusal(429, SandboxRateLimited, retry_after=12),
        Refusal(403, SandboxQuotaExceeded),
        Refusal(401, CredentialRefused),
    ),
    secrets=("DAYTONA_API_KEY",),
    missing="DAYTONA_API_KEY is not set",
    login=(".config/daytona/config.json", login),
    wrong=({"memory_gb": "x"}, {"target": "us east"}, {"target": ""}, {"cpus": "5"}, {"auto_stop_minutes": "0"}),
    too_much=Resources(storage_mb=50 * 1024, cpus=0.5),
    said=("at most 10 GB of disk", "cpus = 0.5"),
    page=ROOT / "docs" / "sandboxes" / "daytona.md",
)


class TestFaults(CloudFaults):
    wire = WIRE


class TestRollouts(CloudRollouts):
    wire = WIRE
    tasks = ROOT / "examples" / "tasks"

    def test_what_a_box_cannot_limit_is_said_before_the_first_prompt(
        self, bench: Callable[..., Any], cloud: Remote, tmp_path: Path
    ) -> None:
        """Only a box knows whether it can keep a reviewer from writing; the coder's turn is not paid for before that."""
        turn = {"turns": [[{"run": "true"}]]}
        roles = [
            {"name": role, "agent": "scripted", "options": {"script": json.dumps(turn)}}
            for role in ("coder", "reviewer")
        ]
        roles[1]["read_only"] = True
        scene = {"name": "review", "roles": roles, "turns": [{"role": "coder"}, {"role": "reviewer", "prompt": "look"}]}
        job = {"tasks_dir": str(self.tasks / "hello-file"), "sandbox": "daytona", "scenes": [scene]}
        (tmp_path / "job.yaml").write_text(json.dumps(job))
        done = bench("eval", "create", "--config", "job.yaml", code=1)
        assert "This box cannot limit what one process sees" in done.stdout + done.stderr
        events = next((tmp_path / "jobs").rglob("events.jsonl")).read_text()
        assert '"turn_started"' not in events
        assert cloud.boxes == []


def test_a_context_is_sent_as_plain_files(tmp_path: Path) -> None:
    """Daytona's builder makes an empty file of a link and leaves folders out."""
    from benchflow_sandbox_daytona.images import _pack

    (tmp_path / "outside").write_text("secret")
    (folder := tmp_path / "context").mkdir()
    (folder / "file").write_text("content")
    (folder / "link").symlink_to("file")
    (folder / "out").symlink_to(tmp_path / "outside")
    (folder / "empty").mkdir()
    with (tmp_path / "tar").open("w+b") as file:
        _pack(folder, file)
        with tarfile.open(fileobj=file) as tar:
            assert {one.name: (one.isreg(), one.size) for one in tar} == {"file": (True, 7), "link": (True, 7)}


class TestDaytona(CloudCase):
    wire = WIRE

    async def test_ctrl_c_stays_ours_while_a_start_is_waited_for(
        self, open_provider: Open, image: ImageRef, cloud: Remote, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The SDK's stream of events, which it opens then, would take it over: once in a process, and here again."""
        monkeypatch.setattr("engineio.async_client.async_signal_handler_set", False)
        provider = open_provider()
        loop, ours = asyncio.get_running_loop(), asyncio.Event()
        loop.add_signal_handler(signal.SIGINT, ours.set)
        cloud.fault("POST /sandbox", delay=0.5)
        try:
            box = await provider.start(image, StartRequest(name="slow"))
            os.kill(os.getpid(), signal.SIGINT)
            await asyncio.wait_for(ours.wait(), 5)
        finally:
            loop.remove_signal_handler(signal.SIGINT)
        await box.stop()

    async def test_a_dead_host_costs_nobody_money(
        self, provider: SandboxProvider, image: ImageRef, cloud: Remote
    ) -> None:
        box = await provider.start(image, StartRequest(name="short", expires_after=1800))
        asked = cloud.state()["sandboxes"][box.info.id]
        assert (asked["autoStopInterval"], asked["autoDeleteInterval"], asked["ttlMinutes"]) == (30, 0, 30)
        await box.stop()
