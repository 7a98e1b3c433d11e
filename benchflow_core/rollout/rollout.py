"""The phase machine of one rollout. Each phase is a public method; `run()` is their composition."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from copy import copy
from pathlib import Path
from typing import Any, Self

from benchflow_core.contracts import events as ev
from benchflow_core.contracts.drivers import SoftVerdict, TurnRecord
from benchflow_core.contracts.gateways import ModelEndpoint
from benchflow_core.contracts.sandboxes import AccessView, Change, ImageRef, Sandbox, SandboxProvider, Snapshot
from benchflow_core.contracts.scenes import Role
from benchflow_core.contracts.tasks import Rewards, Step, VerifierSettings
from benchflow_core.errors import (
    BenchflowError,
    Cancelled,
    ConfigurationError,
    ErrorKind,
    InfrastructureError,
    SandboxStartError,
)
from benchflow_core.results.clock import Stopwatch, now
from benchflow_core.results.files import out_of_files, read_jsonl
from benchflow_core.results.layout import job_name, rollout_name
from benchflow_core.rollout import collect, driving, ending, finish, prepare
from benchflow_core.rollout.branch import Branch, RunChild, branch
from benchflow_core.rollout.deadline import deadline
from benchflow_core.rollout.feature_views import BoxView, RolloutRunView
from benchflow_core.rollout.features import FeatureRuns
from benchflow_core.rollout.host import Host
from benchflow_core.rollout.models import RolloutModels
from benchflow_core.rollout.observers import ObserverBus
from benchflow_core.rollout.open_sessions import OpenSessions
from benchflow_core.rollout.plan import Plan, make_plan
from benchflow_core.rollout.record import Record
from benchflow_core.rollout.result import RolloutResult
from benchflow_core.rollout.state import Keeper
from benchflow_core.rollout.steps import run_steps
from benchflow_core.rollout.user_deadline import UserDeadline
from benchflow_core.rollout.verification import run_soft_verify, run_verify
from benchflow_core.settings.models import RolloutConfig

__all__ = ["Rollout"]


class Rollout:
    """One agent, one task, one box, one score."""

    def __init__(
        self, config: RolloutConfig, plan: Plan, host: Host, *, owns_host: bool, bus: ObserverBus | None
    ) -> None:
        self.config = config
        self.plan = plan
        self.host = host
        self.job = config.job_name or job_name()
        self._owns_host = owns_host
        self._bus = bus
        self._begin(config.rollout_name)

    def _begin(self, name: str | None) -> None:
        """Everything that one life of it changes."""
        self.name = name or rollout_name(self.plan.task.path.name)
        self.dir: Path = self.config.jobs_dir / self.job / self.name
        self.result: RolloutResult = finish.new_result(self)
        self.phase = "created"
        self.step: Step | None = None
        self.error: BenchflowError | None = None
        self.agent_user: str | None = None
        self.agent_home = "/root"
        self.workdir = "/"
        self.context = self.plan.task.environment.context
        """What of the task the image is built from."""
        self.host_vars: dict[str, str] = {}
        self.turn = 0
        self.prompt_accepted = False
        """Before that, an agent's failure is not scored."""
        self.user = copy(self.plan.user) if self.config.user is None else self.config.user
        """The task's is each rollout's own: a plan may be several's."""
        self.user_deadline = UserDeadline(self.config.user_timeout)
        self._record: Record | None = None
        self._provider: SandboxProvider | None = None
        self._sandbox: Sandbox | None = None
        self._image: ImageRef | None = None
        self._origin: Snapshot | None = None
        self.sessions = OpenSessions(self)
        self.models = RolloutModels(self)
        self.keeper = Keeper(self)
        self.box_view = BoxView(self)
        self.goes_on_from: Path | None = None
        """What the features of an earlier rollout saved, where this one goes on from it."""
        self.features = FeatureRuns(self.plan.features, lambda feature: RolloutRunView(self, feature))
        self.events_before: Path | None = None
        """Of the rollout that is verified again, where this one is not the one that ran."""
        self.is_reference = False
        """It plays the task's solution for a certificate: verified as left, its changes kept."""
        self.changes: list[Change] = []
        self.loads: dict[str, str] = {}
        """By role, the session of an earlier rollout that its agent is asked to go on with."""
        self.load_mark = self.host.watch.mark()
        self.load: dict[str, Any] = {}
        self._stopwatch = Stopwatch()
        self._task: asyncio.Task[Any] | None = None
        self._cancel_reason: str | None = None

    @classmethod
    async def create(
        cls,
        config: RolloutConfig,
        host: Host | None = None,
        *,
        plan: Plan | None = None,
        bus: ObserverBus | None = None,
    ) -> Self:
        """Plan and check; nothing is started and nothing written."""
        own = host is None
        host = host or Host()
        return cls(config, plan or make_plan(config, host.plugins, host.env), host, owns_host=own, bus=bus)

    # --- what phases hold ------------------------------------------------------------------------------

    @property
    def record(self) -> Record:
        if self._record is None:
            raise ConfigurationError("setup() comes first.")
        return self._record

    @property
    def sandbox(self) -> Sandbox:
        if self._sandbox is None:
            raise ConfigurationError("start() comes first.")
        return self._sandbox

    def feature(self, name: str) -> Any:
        """A feature's part of this rollout, for Python programs: `rollout.feature("world").world.snapshot()`."""
        if (found := self.features.run(name)) is None:
            raise ConfigurationError(f"feature '{name}' takes no part in this rollout.")
        return found

    @property
    def provider(self) -> SandboxProvider:
        if self._provider is None:
            raise ConfigurationError("start() comes first.")
        return self._provider

    @property
    def image(self) -> ImageRef:
        if self._image is None:
            raise ConfigurationError("start() comes first.")
        return self._image

    @property
    def started_image(self) -> ImageRef | None:
        return self._image

    @property
    def seconds(self) -> float:
        """Since it was made."""
        return self._stopwatch.seconds

    @property
    def event_count(self) -> int:
        return self._record.log.count if self._record is not None else 0

    def flush_events(self) -> None:
        """What happened so far can be read from disk: the last lines of a silent agent would be held back."""
        if self._record is not None:
            with suppress(BenchflowError):  # a full disk is found out by whoever writes
                self._record.log.flush()

    @property
    def tool_calls(self) -> int:
        return self._record.counts.tool_calls if self._record is not None else 0

    def events(self) -> Sequence[Mapping[str, Any]]:
        """For observers, from any thread: the event log so far, as far as it is on disk."""
        return list(read_jsonl(self.record.dir.events))

    def cancel(self, reason: str) -> None:
        """Ask `run()` to stop; it is torn down as on Ctrl-C."""
        self._cancel_reason = reason
        if self._task is not None:
            self._task.get_loop().call_soon_threadsafe(self._task.cancel)

    # --- phases ----------------------------------------------------------------------------------------

    async def setup(self) -> None:
        """Make the rollout's folder and write down what is going to happen. After `cleanup()` it is another rollout."""
        if self.phase == "cleaned":
            self._begin(None)
        self._record = Record(self.dir, self.job, self.host.redactor, self._bus)
        self.result.started_at = now()
        prepare.hide_secrets(self)
        self.host_vars = prepare.allowed_host_vars(self)
        finish.write_config(self)
        self.record.event("rollout_started", {"task": self.result.task_name, "rollout": self.name, "job": self.job})
        self.record.tell(
            ev.RolloutStarted,
            rollout=self,
            task=self.result.task_name,
            agent=self.result.agent,
            model=self.result.model,
            attempt=self.config.attempt,
        )
        for notice in self.plan.notices:
            self.notice(notice)

    async def start(self) -> None:
        """Prepare the image with the agent's layers, start the box, make it ready, pass the health gate."""
        limit = self.plan.task.environment.build_timeout
        late = f"the box was not up within {limit:g} s."
        async with self.in_phase("start", "environment_setup"), deadline(limit, lambda: SandboxStartError(late)):
            self._provider = await self.host.provider(self.plan.sandbox, self.config.sandbox_options)
            self._image = await self.prepared_image()
            try:
                self._sandbox = await self._provider.start(self._image, prepare.start_request(self))
            except InfrastructureError:
                self.host.forget_images()
                raise
            self.workdir = self._sandbox.info.workdir
            await prepare.ready_box(self)

    async def prepared_image(self) -> ImageRef:
        """The image with the agent's layers, shared by all rollouts of the host that ask for the same."""
        plan, config = self.plan, self.config
        request = plan.features.build(plan.image_request(config), self.host.work_dir)
        self.context = request.context
        return await self.host.image(plan.sandbox, config.sandbox_options, request, plan.layers(), plan.runtimes())

    async def go_on_from(self, snapshot: Snapshot) -> None:
        """Put a box on a snapshot of this one in its place. Files stay, processes end."""
        self._origin = snapshot
        await self.sandbox.stop()
        self._sandbox = await self.provider.start(snapshot.image, prepare.start_request(self))

    def adopt(self, provider: SandboxProvider, image: ImageRef, sandbox: Sandbox, workdir: str) -> None:
        """Take a box that is already there: one made from the state that an earlier rollout left."""
        self._provider, self._image, self._sandbox, self.workdir = provider, image, sandbox, workdir

    async def install_agent(self) -> None:
        """The agent's user, files and hooks. Its program is already there: it came as a layer of the image."""
        limit = self.config.sandbox_setup_timeout
        late = f"preparing the agent's user and files took longer than {limit:g} s."
        async with self.in_phase("install_agent", "agent_setup"), deadline(limit, lambda: InfrastructureError(late)):
            await prepare.ready_agent(self)

    async def connect(self) -> None:
        """Open the session of the first role."""
        await self.connect_as(next(iter(self.plan.roles)))

    async def connect_as(self, role: str | Role, view: AccessView | None = None) -> None:
        """Open a role's session, if it is not open. `view`: narrower than the role's own."""
        await self.sessions.open(role if isinstance(role, str) else role.name, view)

    async def execute(self, prompts: Sequence[str | None] | None = None) -> list[TurnRecord]:
        """Send prompts to the connected role (`None`: the instruction), within the agent's time."""
        role = self.sessions.first or next(iter(self.plan.roles))
        async with driving.agent_time(self), self.features.lifetime("turns", self.box_view):
            return [await self.prompt(role, text) for text in (prompts or [None])]

    async def prompt(
        self, role: str, text: str | None, *, scene: str = "default", view: AccessView | None = None
    ) -> TurnRecord:
        """One turn of one role (`None`: the instruction)."""
        return await self.sessions.prompt(role, self.instruction() if text is None else text, scene, view)

    async def disconnect(self, *, leave: bool = False) -> None:
        """Kill every agent process: only the file system carries over. `leave`: what agents started lives on."""
        await self.sessions.close(leave=leave)

    async def verify(self) -> Rewards | None:
        """Verify the box as it stands; the verdict goes into the result."""
        await self.disconnect(leave=True)
        driving.note_limits(self)
        await self.models.revoke()
        async with self.in_phase("verify", "verifier"):
            return await run_verify(self)

    async def soft_verify(self) -> SoftVerdict:
        """Verify between turns: it informs and never scores."""
        return await run_soft_verify(self)

    async def cleanup(self) -> RolloutResult:
        """End every process, remove the box, write the result. Safe to call again."""
        if self.phase == "cleaned":
            return self.result
        try:
            if self._record is not None:
                await self.disconnect()
                await self.models.finish()
            await ending.leave_features(self)
            if self._sandbox is not None:
                await self.host.models.leave(self._sandbox)
                async with self.in_phase("cleanup", None):
                    await ending.end_box(self, self._sandbox)
            if self._origin is not None:
                await self.provider.forget(self._origin)
            await self.keeper.settle()
        finally:
            self.phase = "cleaned"
            if self._owns_host:
                await self.host.close()
            if self._record is not None:
                finish.write_result(self, self._stopwatch.seconds)
        return self.result

    async def run(self) -> RolloutResult:
        """The whole life. Expected failures end up typed in the result; cancelling still tears everything down."""
        self._task = asyncio.current_task()
        try:
            await self._live_through()
        except BenchflowError as error:
            self.fail(error)
        except OSError as error:
            self.fail(prepare.typed(self, error))
        except asyncio.CancelledError:
            self.fail(Cancelled(self._cancel_reason or "stopped by the user."))
            await ending.clean_shielded(self)
            if self._cancel_reason is None:
                raise
            return self.result
        except (Exception, SystemExit) as error:  # a defect, ours or a plugin's: the box goes all the same
            self.fail(BenchflowError(f"defect in the rollout: {type(error).__name__}: {error}"))
            await ending.clean_shielded(self)
            raise
        await ending.clean_shielded(self)
        return self.result

    # --- parts of run ----------------------------------------------------------------------------------

    async def _live_through(self) -> None:
        await self.setup()
        await self.start()
        await self.install_agent()
        if self.plan.task.steps:
            await run_steps(self)
            return
        await self.drive()
        await self.gather()
        if self._worth_verifying():
            await (self.verify() if self.config.verify else self.keep())

    async def keep(self) -> None:
        """Keep what `keep_state` wants, in the place of a verification."""
        if await self.keeper.capture() is not None:
            async with self.features.verification(self.box_view, self.dir):
                return

    async def branch(
        self,
        n: int,
        run_child: RunChild | None = None,
        *,
        prompts: Sequence[str | None] | None = None,
        concurrency: int = 1,
        load_session: bool = True,
        require_sandbox_snapshot: bool = True,
    ) -> Branch:
        """From this moment, n continuations in boxes and worlds of their own, each with its own reward.

        Every agent session ends first. `run_child(child, number)` plays one; without it the child is prompted with
        `prompts`, or plays the plan's steps. The agent goes on with its session where it can load one.
        """
        return await branch(
            self, n, run_child, prompts=prompts, concurrency=concurrency, load_session=load_session,
            require_sandbox_snapshot=require_sandbox_snapshot,
        )  # fmt: skip

    def session_ids(self) -> dict[str, str]:
        """By role, of the sessions that are open."""
        return self.sessions.ids()

    async def drive(self) -> None:
        """Let the driver prompt until it is done. An agent's own failure is recorded and verified as it stands."""
        await driving.drive(self)

    async def gather(self) -> None:
        """Logs and artifacts, before the verifier."""
        await self.features.leave("agent")
        await collect.gather(self)

    def _worth_verifying(self) -> bool:
        return self.error is None or self.error.kind is ErrorKind.AGENT

    def write_missing_result(self) -> None:
        """Where cleaning up did not come to it."""
        if self._record is not None and not self.record.dir.result.exists():
            finish.write_result(self, self._stopwatch.seconds)

    @asynccontextmanager
    async def in_phase(self, name: str, timing: str | None) -> AsyncIterator[None]:
        """Its beginning, end, time and error are written down and told; `timing` is its name in the result."""
        watch, failed = Stopwatch(), None
        self.phase = name
        self.record.event("phase_started", {"phase": name})
        self.record.tell(ev.PhaseStarted, rollout=self, phase=name)
        try:
            yield
        except BenchflowError as error:
            failed = error.to_json()
            raise
        finally:
            if timing:
                self.result.timing[timing] = self.result.timing.get(timing, 0.0) + watch.seconds
            self.record.event("phase_finished", {"phase": name, "seconds": watch.seconds, "error": failed})
            self.record.tell(ev.PhaseFinished, rollout=self, phase=name, seconds=watch.seconds, error=failed)

    # --- small things ----------------------------------------------------------------------------------

    def said(self, kind: str, data: Mapping[str, Any]) -> None:
        """One line of the verifier's for the log."""
        self.record.event(kind, data)

    def fail(self, error: BenchflowError) -> None:
        """The first failure is the result's; later ones are events."""
        error = out_of_files(error) or error
        if self._record is not None:
            self.record.event("error", error.to_json())
        if self.error is None:
            self.error = error
            self.result.error = self.host.redactor.text(error.message)
            self.result.error_info = error.to_json()

    def notice(self, text: str) -> None:
        if text not in self.result.notices:
            self.result.notices.append(text)
            self.record.event("notice", {"text": text})

    def home_of(self, role: str) -> str:
        """The home of a role: the user's, or a folder of its own below it."""
        own = self.plan.homes.get(role)
        return f"{self.agent_home.rstrip('/')}/{own}" if own else self.agent_home

    def settings(self) -> VerifierSettings:
        return self.step.verifier if self.step else self.plan.task.verifier

    def instruction(self) -> str:
        task = self.plan.task
        text = self.step.instruction if self.step else task.instruction
        whole = f"{task.prompt_prefix}\n\n{text}" if task.prompt_prefix else text
        whole += self.plan.features.note
        named = collect.named_workdir(self) if self._sandbox is not None else self.workdir
        return whole if named == self.workdir else f"{whole}\n\n(Here {named} is {self.workdir}.)"

    def solution_env(self) -> dict[str, str]:
        return prepare.solution_env(self)

    async def model(self, purpose: str) -> ModelEndpoint:
        """For judges and simulated users: a model through the gateway, so that its tokens count."""
        own = self.user and self.user.model_name if purpose == "user" else self.settings().params.get("model")
        return await self.models.for_host(purpose, own or self.result.model)
