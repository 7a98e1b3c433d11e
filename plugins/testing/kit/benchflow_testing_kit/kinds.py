"""The smaller kinds: what can be said of a plugin without running a whole job."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest

from benchflow_core.contracts import (
    CommandSpec,
    DriverSpec,
    EnvironmentSpec,
    ExporterSpec,
    JobFinished,
    JobStarted,
    ObserverSpec,
    RolloutRecord,
    ServiceContext,
    ServiceSpec,
    SourceRequest,
    SourceSpec,
    Task,
)
from benchflow_testing_kit.audit import effects
from benchflow_testing_kit.episode import RecordedEpisode
from benchflow_testing_kit.host import tree_digest
from benchflow_testing_kit.plugin import PluginConformance
from benchflow_testing_kit.suite import limit

__all__ = [
    "CommandConformance",
    "DriverConformance",
    "EnvironmentConformance",
    "ExporterConformance",
    "ObserverConformance",
    "ServiceConformance",
    "SourceConformance",
]


class CommandConformance(PluginConformance):
    """A command builds, and its help can be read."""

    kind: ClassVar[str] = "command"

    def test_command_has_help(self, spec: CommandSpec) -> None:
        import click
        from click.testing import CliRunner

        commands = _commands(spec)
        assert commands, "it has neither a build nor commands"
        for name, command in commands.items():
            assert isinstance(command, click.Command), f"{name} is a {type(command).__name__}, not a click command"
            done = CliRunner().invoke(command, ["--help"])
            assert done.exit_code == 0 and "Usage:" in done.output, done.output

    def test_wrong_option_is_a_usage_error(self, spec: CommandSpec) -> None:
        from click.testing import CliRunner

        for name, command in _commands(spec).items():
            done = CliRunner().invoke(command, ["--no-such-option-of-the-kit"])
            assert done.exit_code == 2, f"{name}: {done.output}"


def _commands(spec: CommandSpec) -> dict[str, Any]:
    """Every command of a spec by its name; the one that `build` makes has none."""
    from pkgutil import resolve_name

    built = {"build": spec.build()} if spec.build is not None else {}
    return {**built, **{name: resolve_name(path) for name, path in spec.commands.items()}}


class DriverConformance(PluginConformance):
    """A driver prompts, and comes to an end whatever the verifier says between turns."""

    kind: ClassVar[str] = "driver"
    settings: ClassVar[frozenset[str]] = PluginConformance.settings | {"driver_params", "driver_task"}

    @pytest.fixture
    def driver_params(self) -> Mapping[str, Any]:
        """What `name:k=3` would set, over the spec's defaults."""
        return {}

    @pytest.fixture
    def driver_task(self) -> Task | None:
        """The task to play, for a driver that reads something of it: a foreign environment's."""
        return None

    @limit(60)
    async def test_driver_prompts_and_ends(
        self, spec: DriverSpec, driver_params: Mapping[str, Any], driver_task: Task | None
    ) -> None:
        for passes in (True, False):
            episode = RecordedEpisode(passes=passes, task=driver_task)
            await spec.drive(episode, {**spec.params, **driver_params})
            assert episode.prompts, "the driver prompted nobody"
            assert {role for role, _ in episode.prompts} <= set(episode.roles), "it prompted a role that is not there"
            if spec.finish is not None:
                await spec.finish(episode, {**spec.params, **driver_params})

    async def test_driver_can_be_cancelled(
        self, spec: DriverSpec, driver_params: Mapping[str, Any], driver_task: Task | None
    ) -> None:
        episode = RecordedEpisode(passes=False, hangs=True, task=driver_task)
        task = asyncio.create_task(_drive(spec, episode, driver_params))
        await asyncio.sleep(0.2)
        task.cancel()
        await asyncio.wait([task], timeout=10)
        if task.done() and not task.cancelled():
            task.result()  # it may say that it cannot be tried without a box
        assert task.cancelled(), "a cancelled driver must not go on"


async def _drive(spec: DriverSpec, episode: RecordedEpisode, params: Mapping[str, Any]) -> None:
    await spec.drive(episode, {**spec.params, **params})


class EnvironmentConformance(PluginConformance):
    """Manifests are where the spec says, named `name@version.toml`, and TOML."""

    kind: ClassVar[str] = "environment"

    def test_there_is_something_in_it(self, spec: EnvironmentSpec) -> None:
        assert spec.manifests is not None or spec.state_backends

    def test_manifests_can_be_read(self, spec: EnvironmentSpec) -> None:
        if spec.manifests is None:
            pytest.skip("no manifests")
        files = sorted(spec.manifests.glob("*.toml"))
        assert files, f"no manifests in {spec.manifests}"
        for file in files:
            assert re.fullmatch(r"[a-z0-9][a-z0-9._-]*@\w[\w.-]*\.toml", file.name), f"{file.name}: name@version.toml"
            assert tomllib.loads(file.read_text(encoding="utf-8"))

    def test_state_backends_are_named(self, spec: EnvironmentSpec) -> None:
        kinds = [backend.kind for backend in spec.state_backends]
        assert len(set(kinds)) == len(kinds) and all(kinds)


class ExporterConformance(PluginConformance):
    """An exporter reads a finished rollout and changes nothing."""

    kind: ClassVar[str] = "exporter"
    settings: ClassVar[frozenset[str]] = PluginConformance.settings | {"rollout_record"}

    @pytest.fixture
    def rollout_record(self, tmp_path: Path) -> RolloutRecord:
        """A small finished rollout."""
        events = [
            {"kind": "turn_started", "time": 1.0, "scene": "default", "role": "agent", "turn": 1, "prompt": "hi ü"},
            {"kind": "agent_message_chunk", "time": 1.5, "data": {"content": {"type": "text", "text": "hello"}}},
            {"kind": "turn_finished", "time": 2.0, "stop_reason": "end_turn"},
        ]
        result = {"task": "sample", "agent": "sample", "rewards": {"reward": 1.0}}
        (tmp_path / "result.json").write_text(json.dumps(result))
        return RolloutRecord(tmp_path, result, {"agent": "sample"}, lambda: iter(events))

    def test_export_is_pure_and_repeatable(self, spec: ExporterSpec, rollout_record: RolloutRecord) -> None:
        spec.export(rollout_record, spec.options)
        before = tree_digest(rollout_record.dir)
        with effects() as found:
            first, second = (spec.export(rollout_record, spec.options) for _ in range(2))
        assert isinstance(first, bytes) and first == second
        assert not found and tree_digest(rollout_record.dir) == before, f"an exporter writes nothing itself: {found}"
        if spec.lines:
            assert not first or first.endswith(b"\n"), "whole lines"

    def test_file_name_is_plain(self, spec: ExporterSpec) -> None:
        assert spec.file_name and "/" not in spec.file_name and not spec.file_name.startswith(".")


class ObserverConformance(PluginConformance):
    """An observer takes events without raising."""

    kind: ClassVar[str] = "observer"

    def test_events_are_taken(self, spec: ObserverSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        started = JobStarted(time=1.0, job="kit", job_dir=tmp_path, planned=1, config={"agent": "x"})
        finished = JobFinished(time=2.0, job="kit", job_dir=tmp_path, summary={"scored": 1, "planned": 1})
        assert isinstance(spec.enabled(), bool)
        for event in (started, finished):
            if not spec.events or isinstance(event, spec.events):
                spec.on_event(event)
        if spec.flush is not None:
            spec.flush()


class ServiceConformance(PluginConformance):
    """A service's command line is made purely, and says where it listens."""

    kind: ClassVar[str] = "service"

    def test_command_is_pure_and_uses_the_port(self, spec: ServiceSpec) -> None:
        context = ServiceContext(
            port=45_123, data_dir="/data/kit", runtimes={r.name: f"/opt/{r.name}" for r in spec.runtimes}
        )
        assert (spec.command is None) != (spec.serve is None), "a service is a program, or a server on the host"
        assert 0 < spec.port < 65_536
        if spec.command is None:
            return
        context = dataclasses.replace(context, program=spec.program, db="/data/kit/kit.db")
        if spec.layers:
            context = dataclasses.replace(context, prefix=spec.layers[0].prefix)
        with effects() as found:
            argv = spec.command(context)
        assert argv and argv == spec.command(context) and all(isinstance(a, str) for a in argv)
        assert not found, f"`command` only describes: {found}"
        assert any("45123" in a for a in argv), "the service listens where it is told to"
        assert spec.health_path.startswith("/") and spec.program

    def test_installs_are_pinned(self, spec: ServiceSpec) -> None:
        for layer in spec.layers:
            assert re.search(r"@[^@]*\d", layer.key), f"the key {layer.key!r} has no version: name@version"


class SourceConformance(PluginConformance):
    """A source knows its own addresses, and fetches the same thing twice."""

    kind: ClassVar[str] = "source"
    settings: ClassVar[frozenset[str]] = PluginConformance.settings | {"source_uris"}

    @pytest.fixture
    def source_uris(self) -> Sequence[str]:
        """Addresses that can be fetched while testing; may be empty."""
        return ()

    def test_other_addresses_are_left_to_others(self, spec: SourceSpec) -> None:
        for uri in ("", "./folder", "no-such-scheme-of-the-kit://x", "\0"):
            assert spec.matches(uri) is False, uri

    def test_fetching_is_repeatable(self, spec: SourceSpec, source_uris: Sequence[str], tmp_path: Path) -> None:
        if not source_uris:
            pytest.skip("no fixture `source_uris`")
        for uri in source_uris:
            assert spec.matches(uri) is True
            first, second = (spec.fetch(SourceRequest(uri, cache_dir=tmp_path / "cache")) for _ in range(2))
            assert first.root.is_dir() and first.provenance == second.provenance
            assert {"type", "uri", "requested_ref", "resolved_sha", "path"} <= set(first.provenance)
