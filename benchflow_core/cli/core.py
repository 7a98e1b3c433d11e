"""The core as commands of packages use it: `contracts/core.py`, carried out."""

from __future__ import annotations

from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from benchflow_core.contracts.core import InstalledPlugin, OpenRollout, RolloutHost, RolloutPlan, TaskNeeds, TypedJob
from benchflow_core.evaluation.stored import StoredFiles
from benchflow_core.plugins import Loaded, registry

if TYPE_CHECKING:
    import click

    from benchflow_core.contracts.sandboxes import Sandbox
    from benchflow_core.contracts.tasks import Task
    from benchflow_core.rollout import Host

__all__ = ["CoreOfCommands"]

T = TypeVar("T")


class CoreOfCommands(StoredFiles):
    """Calls the module that knows; each is imported when it is first needed."""

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        from benchflow_core.cli.running import run_async

        return run_async(work)

    def env(self) -> Mapping[str, str]:
        from benchflow_core.dotenv import user_env

        return user_env()

    def install_command(self, distribution: str) -> str:
        from benchflow_core.plugins.remedies import install_command

        return install_command(distribution)

    def mentioned(self, kind: str, text: str | None) -> Sequence[Loaded]:
        return registry().mentioned(kind, text)

    def plugin(self, kind: str, name: str) -> Loaded:
        from benchflow_core.rollout.choose import find_agent

        return find_agent(name, registry()) if kind == "agent" else registry().get(kind, name)

    def agent_for(self, purpose: Literal["reference", "null"]) -> str:
        from benchflow_core.rollout.defaults import agent_for

        return agent_for(purpose, registry()).name

    def installed(self, name: str | None = None) -> list[InstalledPlugin]:
        from benchflow_core.plugins.survey import survey

        return survey(registry(), name)

    def blocked(self, kind: str) -> str:
        return registry().kept_out(kind)

    def strict(self) -> bool:
        return registry().policy.strict

    def find_tasks(self, path: Path) -> list[Path]:
        from benchflow_core.task import find_tasks

        return find_tasks(path)

    def load_task(self, path: Path) -> Task:
        from benchflow_core.task import load_task

        return load_task(path)

    def adapter_of(self, path: Path) -> Loaded:
        from benchflow_core.task.load import adapter_of

        return adapter_of(path)

    def needs_of(self, task: Task) -> TaskNeeds:
        from benchflow_core.task.env import requested_host_vars
        from benchflow_core.task.needs import required_capabilities, wanted_capabilities

        variables = requested_host_vars(task)
        return TaskNeeds(
            required=required_capabilities(task),
            wanted=wanted_capabilities(task),
            host_variables={variable.name: variable.places for variable in variables},
            required_variables=frozenset(variable.name for variable in variables if variable.required),
        )

    def isolation_policies(self, plan: RolloutPlan) -> Sequence[str]:
        from benchflow_core.verify import policies

        return policies(plan.task, plan.task.verifier, plan.capabilities)

    def keep_live_check(self, plan: RolloutPlan, report: Mapping[str, Any]) -> None:
        from benchflow_core.results.certified import certify
        from benchflow_core.results.layout import cache_dir

        certify(cache_dir(self.env()), plan.digest, dict(report))

    def keep_certificate(self, task: Path, report: Mapping[str, Any]) -> None:
        from benchflow_core.results.certified import certificate_file
        from benchflow_core.results.files import write_json

        write_json(certificate_file(task), dict(report))

    def provider_at(self, wire: str, url: str) -> tuple[str, Mapping[str, str]]:
        from urllib.parse import urlsplit

        from benchflow_core.errors import ConfigurationError
        from benchflow_core.gateway.resolve import providers_of
        from benchflow_core.plugins import registry

        for provider in providers_of(registry()).values():
            if wire in provider.endpoints and provider.base_url_env and provider.credentials:
                own = next(iter(provider.endpoints.values()))
                env = {provider.base_url_env[0]: url + urlsplit(own).path}
                return provider.name, env | {provider.credentials[0].env: "sk-local-model"}
        raise ConfigurationError(f"no provider speaks '{wire}' at an address that can be chosen.")

    def fetch(self, uri: str, ref: str | None = None) -> Path:
        from benchflow_core.results.layout import cache_dir
        from benchflow_core.task.sources import fetch_source

        return fetch_source(uri, ref=ref, cache=cache_dir(self.env())).root

    def job_options(self) -> Sequence[click.Parameter]:
        from benchflow_core.cli.eval.create import create

        return create.params

    def job_settings(self, ctx: click.Context) -> dict[str, Any]:
        from benchflow_core.cli.eval.create import settings

        return settings(ctx)

    def job(self, ctx: click.Context, given: Mapping[str, Any], overrides: Sequence[str] = ()) -> TypedJob:
        from benchflow_core.cli.running import CommandJob
        from benchflow_core.evaluation.yaml import read_job

        file, typed = ctx.params["config_file"], ctx.params["config_overrides"]
        return CommandJob(ctx.obj, read_job(file, overrides=[*typed, *overrides], given=given))

    @asynccontextmanager
    async def host(self, env: Mapping[str, str] | None = None) -> AsyncIterator[RolloutHost]:
        from benchflow_core.rollout import Host

        async with Host(env={**self.env(), **(env or {})}) as host:
            yield _Rollouts(host)


class _Rollouts:
    """The rollouts of one host."""

    def __init__(self, host: Host) -> None:
        self._host = host

    @property
    def work_dir(self) -> Path:
        return self._host.work_dir

    async def rollout(self, task: Path, **settings: Any) -> OpenRollout:
        from benchflow_core.rollout import Rollout, RolloutConfig

        return await Rollout.create(RolloutConfig(task_path=task, **settings), self._host)

    @asynccontextmanager
    async def kept_box(self, rollout: Path) -> AsyncIterator[tuple[Sandbox, str, str]]:
        from benchflow_core.contracts.sandboxes import StartRequest
        from benchflow_core.errors import ConfigurationError
        from benchflow_core.rollout.state import read_state

        state = read_state(rollout)
        if state is None or not state.captured:
            remedy = "Run the job with --keep-state all, or with --keep-on-failure."
            raise ConfigurationError(f"nothing was kept of {rollout}.", remedy=remedy)
        last = state.captured[-1]
        provider = await self._host.provider(self._host.plugins.get("sandbox", state.sandbox), state.options)
        request = StartRequest(name=f"shell/{rollout.name}", labels={"purpose": "shell", "rollout": rollout.name})
        box = await provider.start(last.snapshot.image, request)
        try:
            yield box, last.workdir, state.sandbox
        finally:
            await box.stop()
