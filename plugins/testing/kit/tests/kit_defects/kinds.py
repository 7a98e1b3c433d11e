"""Broken plugins of the other kinds, made from the templates of `bench plugins new`, which are right."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchflow_core.contracts import AgentSpec, FeatureJob, Layer, PromptOutcome
from benchflow_core.errors import RewardMissing


@dataclass(frozen=True)
class Broken:
    """A spec that is wrong, and the tests that must notice."""

    kind: str
    name: str
    breaks: tuple[str, ...]
    spec: Callable[[Any], Any]
    """From the right spec to the wrong one."""
    fixtures: Mapping[str, Any] = field(default_factory=dict)


ALL: list[Broken] = []


def broken(kind: str, breaks: str, **fixtures: Any):
    def register(function: Callable[[Any], Any]):
        ALL.append(Broken(kind, function.__name__, tuple(breaks.split()), function, fixtures))
        return function

    return register


def changed(what: str, change: Callable[[Any, Path], Any]):
    """A spec whose function `what` gets its result changed; the change sees the argument as well."""

    def make(spec: Any) -> Any:
        inner = getattr(spec, what)
        return dataclasses.replace(spec, **{what: lambda argument: change(inner(argument), argument)})

    return make


# --- adapters -------------------------------------------------------------------------------------------------------


@broken("adapter", "test_detects_its_own_format_and_no_other")
def detects_anything(spec):
    return dataclasses.replace(spec, detect=lambda path: True)


@broken("adapter", "test_loading_is_pure")
def writes_a_cache(spec):
    def write(task, path):
        (path / ".cache").write_text("x")
        return task

    return changed("load", write)(spec)


@broken("adapter", "test_loading_gives_the_same_every_time")
def never_the_same(spec):
    return changed("load", lambda task, _: dataclasses.replace(task, version=os.urandom(4).hex()))(spec)


@broken("adapter", "test_task_is_complete")
def has_no_name(spec):
    return changed("load", lambda task, _: dataclasses.replace(task, name=" "))(spec)


@broken("adapter", "test_paths_stay_inside_the_task")
def points_outside(spec):
    return changed("load", lambda task, path: dataclasses.replace(task, files=(path.parent,)))(spec)


@broken("adapter", "test_host_variables_are_not_read")
def reads_variables(spec):
    return changed("load", lambda task, _: dataclasses.replace(task, metadata=dict(os.environ)))(spec)


@broken("adapter", "test_broken_tasks_are_refused_with_the_file_named test_spoilt_files_give_nothing_but_task_errors")
def lets_errors_through(spec):
    import json

    def load(path):
        json.loads((path / spec.signature).read_text())
        return spec.load(path)

    return dataclasses.replace(spec, load=load)


@broken("adapter", "test_links_out_of_the_task_are_refused")
def follows_links(spec):
    import shutil
    import tempfile

    def load(path):
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(shutil.copytree(path, Path(folder, path.name)))
            return dataclasses.replace(spec.load(copy), path=path)

    return dataclasses.replace(spec, load=load)


class Dialect:
    name = "wrong"
    wants = ("reward.txt",)

    def parse(self, found):
        if not found.files:
            return {"reward": 0.0}
        return {"reward": float(found.files["reward.txt"])}

    def combine(self, steps):
        raise RewardMissing("no idea")


@broken(
    "adapter",
    "test_dialect_tells_missing_from_invalid test_dialect_gives_finite_numbers_or_refuses test_dialect_combines_steps",
)
def has_a_careless_dialect(spec):
    return changed("load", lambda task, _: dataclasses.replace(task, dialect=Dialect()))(spec)


@broken("adapter", "test_new_task_of_the_format_loads")
def scaffolds_rubbish(spec):
    from benchflow_core.contracts import Scaffold

    return dataclasses.replace(spec, scaffold=lambda request: Scaffold(files={"readme.txt": "nothing"}))


# --- agents ---------------------------------------------------------------------------------------------------------


def relaunched(**changes: Any):
    def make(spec):
        return dataclasses.replace(spec, prepare=lambda c: dataclasses.replace(spec.prepare(c), **changes))

    return make


@broken("agent", "test_there_is_a_way_to_start")
def has_nothing(spec):
    return AgentSpec(summary="nothing")


@broken("agent", "test_prepare_is_pure")
def prepares_at_random(spec):
    return dataclasses.replace(
        spec, prepare=lambda c: dataclasses.replace(spec.prepare(c), env={"X": os.urandom(4).hex()})
    )


@broken("agent", "test_secrets_are_not_in_arguments test_secrets_are_in_no_command_line")
def shows_secrets(spec):
    def prepare(context):
        launch = spec.prepare(context)
        return dataclasses.replace(launch, argv=(*launch.argv, f"--key={context.env['KIT_SECRET']}"))

    return dataclasses.replace(spec, prepare=prepare)


broken("agent", "test_launch_is_well_formed")(relaunched(files={"relative/config": b"x"}))
ALL[-1] = dataclasses.replace(ALL[-1], name="writes_relative_files")


@broken("agent", "test_model_is_reached_through_the_endpoint")
def ignores_its_endpoint(spec):
    return dataclasses.replace(spec, wires=("chat",))


@broken("agent", "test_installs_are_pinned")
def installs_the_latest(spec):
    layer = Layer(key="agent", prefix="/opt/agent", install=(("npm", "install", "agent@latest"),))
    return dataclasses.replace(spec, layers=(layer,))


@broken("agent", "test_web_tools_can_be_switched_off")
def claims_to_go_offline(spec):
    return dataclasses.replace(spec, web_tools_can_be_disabled=True)


@broken("agent", "test_wrapping_gives_an_agent")
def wraps_into_nothing(spec):
    return dataclasses.replace(spec, wrap=lambda inner: AgentSpec(summary="empty"))


class Stuck:
    """A session that leaves a process behind and does not let go of a turn."""

    id = "stuck"

    def __init__(self, box):
        self.box = box

    async def prompt(self, text):
        await self.box.spawn(["sleep", "60"])
        await asyncio.sleep(1)
        return PromptOutcome("who_knows")

    async def cancel(self): ...

    async def close(self): ...


@broken("agent", "test_session_answers_prompts test_close_leaves_no_process test_two_sessions_share_a_box")
def gets_stuck(spec):
    async def connect(context):
        return Stuck(context.sandbox)

    return AgentSpec(summary="stuck", connect=connect)


@broken("agent", "test_turn_can_be_cancelled")
def dies_when_cancelled(spec):
    async def connect(context):
        class Session(Stuck):
            async def cancel(self):
                raise RuntimeError("cannot")

        return Session(context.sandbox)

    return AgentSpec(summary="dies", connect=connect)


# --- verifiers ------------------------------------------------------------------------------------------------------


@broken("verifier", "test_methods_are_declared")
def has_no_method(spec):
    return dataclasses.replace(spec, methods=frozenset())


@broken("verifier", "test_cases_get_their_verdict")
def is_always_content(spec):
    async def verify(context):
        return dataclasses.replace(await spec.verify(context), rewards={"reward": 1.0})

    return dataclasses.replace(spec, verify=verify)


@broken("verifier", "test_verdict_is_repeatable_and_well_formed")
def throws_dice(spec):
    async def verify(context):
        return dataclasses.replace(await spec.verify(context), rewards={"reward": int.from_bytes(os.urandom(4))})

    return dataclasses.replace(spec, verify=verify)


@broken("verifier", "test_no_process_is_left test_cancelled_verification_leaves_no_process")
def leaves_a_process(spec):
    async def verify(context):
        await context.sandbox.spawn(["sleep", "60"])
        return await spec.verify(context)

    return dataclasses.replace(spec, verify=verify)


def script_verifier(env: bool = True, keep: bool = True):
    """A small verifier of test scripts; right when both are left on."""

    def make(spec):
        async def verify(context):
            from benchflow_core.contracts import VerifyResult
            from benchflow_core.errors import VerifierError, VerifierTimeout

            script = f"{context.settings.tests_target}/{context.settings.script}"
            variables = dict(context.env) if env else {"KIT_LOGS": context.env["KIT_LOGS"]}
            options = {"cwd": context.workdir, "env": variables, "timeout": context.settings.timeout}
            done = await context.sandbox.exec([script], **options)
            if keep:
                (context.output_dir / "test-stdout.txt").write_bytes(done.stdout + done.stderr)
            if done.timed_out:
                await context.sandbox.kill_all()
                raise VerifierTimeout("too long")
            if done.exit_code == 127:
                raise VerifierError("no script")
            found = await context.collect(done.exit_code)
            return VerifyResult(context.task.dialect.parse(found), exit_code=done.exit_code)

        return dataclasses.replace(spec, verify=verify, methods=frozenset({"test-script"}))

    return make


def scripts(name: str, breaks: str, **options: bool) -> None:
    made = script_verifier(**options)
    ALL.append(Broken("verifier", name, tuple(breaks.split()), made, {"cases": None}))


scripts("runs_scripts", "")
scripts("runs_scripts_in_any_environment", "test_verifier_uses_the_pinned_environment", env=False)
scripts("forgets_what_scripts_say", "test_output_of_a_script_is_kept", keep=False)


# --- features -------------------------------------------------------------------------------------------------------


def another_run(make: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    """A plan function like the template's, of which the rollout's part is changed."""

    def plan(settings: Any, view: Any) -> Any:
        from benchflow_feature_base.text import plan as right

        planned = right(settings, view)
        kind = type(planned)
        changed = type("Changed", (kind,), {"open": lambda self, run: make(kind.open(self, run))})
        return changed(text=planned.text, note=planned.note)

    return plan


def breaks_on_the_second_step(run: Any) -> Any:
    inner, entered = run.agent, []

    def agent(box: Any) -> Any:
        entered.append(box)
        if len(entered) == 4:  # the second step of the second nesting
            raise RuntimeError("I was here before")
        return inner(box)

    run.agent = agent
    return run


def swallows(run: Any) -> Any:
    @contextlib.asynccontextmanager
    async def agent(box: Any) -> Any:
        with contextlib.suppress(Exception):
            yield

    run.agent = agent
    return run


plan_that_breaks = another_run(breaks_on_the_second_step)
plan_that_swallows = another_run(swallows)


def plan_that_writes(settings: Any, view: Any) -> Any:
    Path(settings.base).with_suffix(".seen").write_text("planned")
    return another_run(lambda run: run)(settings, view)


class OddJob(FeatureJob):
    def next(self) -> Mapping[str, Any]:
        return {"no_such_setting": 1}


def asks_for_more() -> Any:
    from benchflow_core.contracts import Settings

    class Asking(Settings):
        base: str

    return Asking


def __getattr__(name: str) -> Any:
    """The model of a broken feature, made when it is named: pydantic is not imported before."""
    if name == "Asking":
        return asks_for_more()
    raise AttributeError(name)


def with_part(**parts: str) -> Callable[[Any], Any]:
    return lambda spec: dataclasses.replace(spec, **{name: f"kit_defects.kinds:{part}" for name, part in parts.items()})


@broken("feature", "test_settings_explain_themselves")
def wants_a_setting_of_every_job(spec):
    return with_part(settings="Asking")(spec)


@broken("feature", "test_planning_is_pure")
def writes_while_it_plans(spec):
    return with_part(plan="plan_that_writes")(spec)


@broken("feature", "test_lifetimes_are_entered_and_left")
def lives_only_once(spec):
    return with_part(plan="plan_that_breaks")(spec)


@broken("feature", "test_an_error_passes_through")
def keeps_errors_for_itself(spec):
    return with_part(plan="plan_that_swallows")(spec)


@broken("feature", "test_its_keys_are_declared")
def writes_what_it_does_not_declare(spec):
    return dataclasses.replace(spec, keys={})


@broken("feature", "test_part_in_a_job")
def changes_what_is_no_setting(spec):
    return with_part(job="OddJob")(spec)


# --- small kinds ----------------------------------------------------------------------------------------------------


@broken("command", "test_command_has_help test_wrong_option_is_a_usage_error")
def builds_something_else(spec):
    import click

    @click.command(context_settings={"ignore_unknown_options": True, "help_option_names": []})
    @click.argument("anything", nargs=-1)
    def command(anything): ...

    return dataclasses.replace(spec, build=lambda: command)


@broken("driver", "test_driver_prompts_and_ends test_driver_can_be_cancelled")
def drives_nothing(spec):
    async def drive(episode, params): ...

    return dataclasses.replace(spec, drive=drive)


@broken("environment", "test_there_is_something_in_it")
def is_empty(spec):
    return dataclasses.replace(spec, manifests=None, state_backends=())


@broken("environment", "test_manifests_can_be_read test_state_backends_are_named")
def has_bad_manifests(spec):
    return dataclasses.replace(spec, manifests=Path("/etc"), state_backends=spec.state_backends * 2)


def executor(spec, **methods):
    """The right executor with other methods: each gets the right one and its arguments."""

    class Wrong:
        def __init__(self, right):
            self.right = right

        def __getattr__(self, name):
            if name in methods:
                return lambda *args: methods[name](self.right, *args)
            return getattr(self.right, name)

    return dataclasses.replace(spec, open=lambda context: Wrong(spec.open(context)))


@broken("executor", "test_items_are_run_by_workers")
def invents_results(spec):
    async def run(right, item, hear):
        result = await right.run(item, hear)
        return dataclasses.replace(result, id="surprise")

    return executor(spec, run=run)


@broken("executor", "test_other_versions_are_refused")
def runs_anything(spec):
    return executor(spec, run=lambda right, item, hear: right.run(dataclasses.replace(item, requirements=()), hear))


@broken("executor", "test_cancelled_item_is_torn_down")
def shields_its_items(spec):
    async def run(right, item, hear):
        return await asyncio.shield(asyncio.ensure_future(right.run(item, hear)))

    return executor(spec, run=run)


@broken("executor", "test_closing_leaves_no_worker")
def keeps_its_workers(spec):
    from benchflow_executor_processes.worker_process import WorkerProcess

    kept = []

    async def run(right, item, hear):
        kept.append(await WorkerProcess.start(dict(os.environ)))
        return await kept[-1].run(item, hear)

    return executor(spec, run=run)


@broken("executor", "test_unused_executor_closes")
def cannot_close(spec):
    async def close(right):
        raise OSError("not connected")

    return executor(spec, close=close)


@broken("exporter", "test_export_is_pure_and_repeatable test_file_name_is_plain")
def writes_beside(spec):
    def export(record, options):
        (record.dir / "export").write_text("x")
        return b"no end of line"

    return dataclasses.replace(spec, export=export, file_name="../out")


@broken("observer", "test_events_are_taken")
def raises_on_events(spec):
    def on_event(event):
        raise RuntimeError("no")

    return dataclasses.replace(spec, on_event=on_event)


@broken("service", "test_command_is_pure_and_uses_the_port test_installs_are_pinned")
def has_a_port_of_its_own(spec):
    return dataclasses.replace(spec, command=lambda c: ("serve", "8080"), layers=(Layer("service", "/opt/x"),))


@broken("source", "test_other_addresses_are_left_to_others test_fetching_is_repeatable")
def serves_anything(spec):
    def fetch(request):
        return dataclasses.replace(spec.fetch(request), provenance={"now": os.urandom(4)})

    return dataclasses.replace(spec, matches=lambda uri: True, fetch=fetch)
