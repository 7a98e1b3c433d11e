"""Every setting of a rollout and of a job, each defined once as a field.

Its name is the key in YAML, the keyword in Python and the key of `job.json`; its docstring is the help of its option
and the description in the JSON Schema; its annotations (`benchflow_core.contracts.settings`) say the rest.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, ValidationError, create_model  # noqa: TID253

from benchflow_core.contracts.agents import PermissionPolicy
from benchflow_core.contracts.scenes import Scene
from benchflow_core.contracts.settings import (
    Alias,
    Also,
    Axis,
    Internal,
    Option,
    Recorded,
    Secret,
    Table,
    Texts,
    Treatment,
)
from benchflow_core.contracts.settings_model import Settings
from benchflow_core.errors import ConfigurationError, PluginError
from benchflow_core.settings.compose import aliases, composed, marked
from benchflow_core.settings.config_file import ConfigFile, complaint
from benchflow_core.settings.matrix import Arm, Matrix, joined, make_arms
from benchflow_core.settings.parts import (
    EMPTY,
    TEXT,
    Count,
    Folder,
    LoopSettings,
    RetryConfig,
    Seconds,
    Source,
    read_idle,
    read_loop,
    read_mode,
    read_numbers,
    read_time,
)

__all__ = [
    "EvaluationConfig",
    "JobKeys",
    "JobSettings",
    "RetryConfig",
    "RolloutConfig",
    "RolloutSettings",
    "empty_rollout",
    "job_keys",
]


class Checked(Settings):
    """Settings that take older names of keywords, and say in a line what is wrong."""

    if not TYPE_CHECKING:

        def __init__(self, /, **given):
            kind = type(self)
            older = aliases(kind)
            given = {older.get(name, name): value for name, value in given.items()}
            try:
                super().__init__(**given)
            except ValidationError as error:
                raise complaint(error, given, kind, ConfigFile(name=kind.__name__)) from None

        __init__.__pydantic_base_init__ = True  # reading JSON does not go through it


class RolloutSettings(Checked, use_attribute_docstrings=True):
    """Everything that is the same for all rollouts of a job, with the settings of installed features."""

    if not TYPE_CHECKING:

        def __new__(cls, *positional, **given):
            return super().__new__(composed(cls))

    agent: Annotated[str | None, Option("-a", "--agent", complete="agent"), Axis("agents"), Treatment()] = None
    """An installed agent, or 'cmd:…' for any ACP command. Several, repeated or a,b: an arm each."""
    model: Annotated[str | None, Option("-m", "--model"), Axis("models"), Treatment()] = None
    """The model, as provider/name or as the agent knows it. Several, repeated or a,b: an arm each."""
    reasoning_effort: Annotated[str | None, Option(), Treatment()] = None
    """none, minimal, low, medium, high, xhigh or max."""
    prompts: Annotated[
        Sequence[str | None] | None,
        Also(lambda v: [v] if isinstance(v, str) else v, TEXT),
        Option("--prompt", repeat=True),
        Treatment(),
    ] = None
    """A prompt instead of the task's instruction; repeatable, one turn each."""
    scenes: Annotated[Sequence[Scene], Recorded("scenes_as_written"), Treatment()] = ()
    """Who speaks in which order, in one shared box. `agent`, `model` and `prompts` are the short form."""
    sandbox: Annotated[
        str | None, Option("-e", "--sandbox", "--environment", "--env", complete="sandbox"), Alias("environment")
    ] = None
    """Which sandbox; without it the best-ranked that answers."""
    sandbox_options: Annotated[Table, Option("--sandbox-option", metavar="K=V")] = EMPTY
    """An option of the sandbox; repeatable."""
    sandbox_user: Annotated[str | None, Also(lambda v: "root" if v == "null" else v, TEXT), Option()] = None
    """Run agents as this user of the box; it is made if missing. null: root."""
    sandbox_setup_timeout: Annotated[Seconds, Option()] = 120.0
    """Seconds for preparing the agent's user and files."""
    sandbox_locked_paths: Texts = ()
    """Paths in the box that no agent can look into, beside those that are closed to them anyway."""
    agent_env: Annotated[Table, Option(metavar="K=V"), Secret(), Treatment()] = EMPTY
    """A variable for the agent; repeatable."""
    agent_options: Annotated[Table, Option("--agent-option", metavar="K=V"), Treatment()] = EMPTY
    """An option of the agent; repeatable."""
    agent_idle_timeout: Annotated[
        Seconds | None,
        Also(read_idle, {"const": "none"}),
        Option(),
        Alias("agent_idle_timeout_sec"),
        Recorded("agent_idle_timeout_sec"),
    ] = 600.0
    """Seconds without a sign of life; 0 or none: no limit."""
    timeout: Annotated[Seconds | None, Option(), Recorded("timeout_sec")] = None
    """Seconds for all of the agent's turns, instead of the task's own limit."""
    isolation: Annotated[str | None, Option(metavar="POLICY")] = None
    """Verifier isolation: fresh, shared or separate; without it the strongest that sandbox and task allow."""
    contested: Annotated[Literal["clean", "as-left", "unscored"], Option()] = "clean"
    """Which score counts where the reward depends on changes that could steer the tests."""
    certificates: Annotated[
        bool, Option("--no-certificates", help="Never run a task's reference solution to settle such a score.")
    ] = True
    """Whether the task's reference solution may be run to settle such a score."""
    verify: Annotated[bool, Option("--no-verify", help="Do not verify: nothing is scored.")] = True
    """Whether the verifier runs; without it nothing is scored."""
    permissions: Annotated[PermissionPolicy, Option()] = "allow"
    """allow: agents do not ask, or get a yes. ask: they ask, and get a yes unless the user says no. reject: they
    ask, and get a no."""
    client_methods: Annotated[Literal["none", "files", "terminal", "all"], Option()] = "none"
    """Serve ACP's fs and terminal methods, for agents that work through their client. They act in the box."""
    driver: str | None = None
    """What decides the prompts; without it the scenes."""
    driver_params: Mapping[str, Any] = EMPTY
    """The driver's own parameters."""
    allow_substitute: Annotated[bool, Option()] = False
    """Run on the sandbox's own files where it cannot have the task's image; marked in the result."""
    allow_env: Annotated[Texts, Option(metavar="NAME")] = ()
    """A host variable the task may read; repeatable."""
    base_image_override: Annotated[str | None, Option(metavar="IMAGE")] = None
    """Use this image for every FROM."""
    context_root: Annotated[str | None, Option(path="folder")] = None
    """The folder Dockerfiles copy from, instead of their task's own."""
    uploads: Mapping[str, str] = EMPTY
    """Host path to path in the box, before the agent starts."""
    pre_agent_hooks: Annotated[Sequence[Callable[[Any], Awaitable[None]]], Internal(), Field(exclude=True)] = ()
    """Awaited with the sandbox, in order, before the agent starts."""
    user: Annotated[Any, Internal(), Field(exclude=True)] = None
    """A simulated user that decides the prompts, instead of scenes."""
    max_user_rounds: Annotated[int, Internal()] = 5
    user_timeout: Annotated[Seconds, Internal()] = 600.0
    """Seconds that the simulated user may take for an answer; they are not the agent's."""
    oracle_access: Annotated[bool, Internal()] = False
    """The simulated user is told the reference solution."""
    usage_tracking: Annotated[
        Literal["auto", "required", "off"], Also(read_mode, {"type": "object", "required": ["mode"]}), Option()
    ] = "auto"
    """required: refuse an agent whose tokens nobody counts, and fail a rollout whose count is not whole."""
    gateway: Annotated[str | None, Option(metavar="NAME", complete="gateway")] = None
    """What carries model traffic; without it the best-ranked that can."""
    gateway_options: Annotated[Table, Option("--gateway-option", metavar="K=V")] = EMPTY
    """An option of the gateway; repeatable."""
    helper_models: Annotated[Literal["same", "own", "refuse"], Option()] = "same"
    """Who answers when an agent asks another model on its own, for a title or a sub-agent: the rollout's model (same),
    the other model itself (own), or nobody."""
    max_rollout_tokens: Annotated[Count | None, Option(metavar="N")] = None
    """Tokens that each agent of a rollout may use."""
    max_rollout_cost: Annotated[float | None, Field(gt=0), Option(metavar="USD")] = None
    """Money that each agent of a rollout may spend; needs the model's prices."""
    record: Annotated[bool, Option()] = False
    """Keep every model exchange as it crossed the wire, for --replay."""
    replay: Annotated[Folder | None, Option(metavar="DIR", path="folder")] = None
    """Answer from what a job or rollout recorded; the model is asked only where it ends."""
    keep_state: Annotated[Literal["none", "failed", "all"], Option()] = "none"
    """Keep the box's files as the agent left them."""
    arm: Annotated[str | None, Internal(), Treatment()] = None
    """Which cell of the job's matrix this is."""
    source_provenance: Annotated[Mapping[str, Any] | None, Internal(), Recorded("source")] = None
    """Where the task was fetched from."""
    dataset: Annotated[Mapping[str, str] | None, Internal()] = None
    """`name` and `version` of the registry entry the task came from."""

    @property
    def environment(self) -> str | None:
        """The older word for `sandbox`."""
        return self.sandbox


class RolloutConfig(RolloutSettings, use_attribute_docstrings=True):
    """One rollout: the settings, the task, and where it is written."""

    task_path: Folder
    jobs_dir: Folder = Path("jobs")
    job_name: str | None = None
    rollout_name: str | None = None
    attempt: int = 1
    trial: int = 1
    order: int = 0
    """Its place in the job's order."""
    seed: int | None = None
    """What the job's order was drawn from."""

    if not TYPE_CHECKING:

        def __init__(self, *positional, **given):
            super().__init__(**dict(zip(("task_path", "jobs_dir"), positional, strict=False)), **given)

        __init__.__pydantic_base_init__ = True

    def effective_scenes(self, default_agent: Callable[[], str]) -> list[Scene]:
        """Return the scenes, or the short form as one."""
        if self.scenes:
            return list(self.scenes)
        single = Scene.single(
            agent=self.agent or default_agent(),
            model=self.model,
            reasoning_effort=self.reasoning_effort,
            prompts=self.prompts,
        )
        return [single]


@cache
def _empty(kind: type[RolloutConfig]) -> RolloutConfig:
    return kind.model_construct(task_path=Path())


def empty_rollout() -> RolloutConfig:
    """Return a config of a rollout with defaults alone, to copy."""
    return _empty(composed(RolloutConfig))


class JobSettings(RolloutSettings, use_attribute_docstrings=True):
    """The settings of every rollout of a job, and those of the job itself."""

    concurrency: Annotated[Count | None, Option("-c", "--concurrency"), Alias("n_concurrent_trials")] = None
    """Rollouts at a time; without it as many as their declared CPUs and memory fit."""
    build_concurrency: Annotated[Count | None, Option()] = None
    """Image builds at a time."""
    trials: Annotated[Count, Option(), Alias("n_attempts")] = 1
    """Rollouts per task and arm."""
    retry: RetryConfig = RetryConfig()
    """Which errors are worth another attempt, how often and after how long."""
    include_tasks: Annotated[Texts, Option("--include", metavar="GLOB"), Alias("include", "includes")] = ()
    """Only tasks of this name; repeatable."""
    exclude_tasks: Annotated[Texts, Option("--exclude", metavar="GLOB"), Alias("exclude", "excludes")] = ()
    """Not tasks of this name; repeatable."""
    skip_unsupported: Annotated[bool, Option()] = False
    """Count tasks this sandbox cannot run as unscored instead of refusing."""
    expected_tasks: Annotated[Count | None, Option(metavar="N")] = None
    """Refuse to run another number of tasks."""
    matrix: Matrix | None = None
    """Run every combination of agents, models, skill modes or scenes, each an arm of the job."""
    seed: Annotated[int, Option()] = 0
    """What the order of rollouts is drawn from."""
    max_cost: Annotated[float | None, Field(ge=0), Option(metavar="USD")] = None
    """Start nothing more once this much is spent."""
    max_tokens: Annotated[int | None, Field(ge=0), Option(metavar="N")] = None
    """Start nothing more once this many tokens are used."""
    max_time: Annotated[float | None, Field(ge=0), Also(read_time, TEXT), Option(metavar="TIME")] = None
    """Start nothing more after 90s, 15m, 2h …"""
    executor: Annotated[str | None, Option(metavar="NAME", complete="executor")] = None
    """Where rollouts run; without it in the process of the job."""
    executor_options: Annotated[Table, Option("--executor-option", metavar="K=V")] = EMPTY
    """An option of the executor; repeatable."""
    limits: Annotated[
        Mapping[str, int], Also(read_numbers, {"type": "object"}), Option("--limit", metavar="KIND:NAME=N")
    ] = EMPTY
    """At most N rollouts at a time that use a sandbox:NAME, provider:NAME or agent:NAME; repeatable."""

    def arms(self) -> list[Arm]:
        """Return the cells of the matrix, or none."""
        return make_arms(self.matrix) if self.matrix else []

    def dataset_stamp(self) -> dict[str, str]:
        """Return how every file of a job names the dataset its tasks came from; nothing for other tasks."""
        return {f"dataset_{key}": self.dataset[key] for key in ("name", "version")} if self.dataset else {}

    def rollout(self, task_path: Path, *, arm: str | None = None, **own: Any) -> RolloutConfig:
        """Return the config of one rollout with these settings, or with those of an arm; they are checked already."""
        shared = {name: value for name, value in vars(self).items() if name not in _OF_THE_JOB}
        if arm is not None:
            shared |= {name: joined(shared[name], value) for name, value in self._arm(arm).settings.items()}
            shared["arm"] = arm
        return empty_rollout().model_copy(update={**shared, "task_path": task_path, **own})

    def _arm(self, name: str) -> Arm:
        found = [arm for arm in self.arms() if arm.name == name]
        if not found:
            raise ConfigurationError(f"the job has no arm '{name}'.")
        return found[0]


_OF_THE_JOB = JobSettings.model_fields.keys() - RolloutSettings.model_fields.keys()


EvaluationConfig = JobSettings
"""The name that Python callers know."""


class JobKeys(Checked, use_attribute_docstrings=True):
    """What a job file says beside the settings of its rollouts: which tasks, and where results go."""

    tasks_dir: Annotated[
        Folder | None,
        Option("-t", "--tasks-dir", "--task", path="any", complete="task"),
        Alias("task_dir", "task_path"),
    ] = None
    """A task, or a folder of tasks, relative to where the command runs."""
    source: Annotated[Source | None, Also(lambda v: {"repo": v} if isinstance(v, str) else v, TEXT), Option()] = None
    """Tasks of a repository."""
    dataset: Annotated[str | None, Option("-d", "--dataset", metavar="NAME@VERSION")] = None
    """A version of a dataset, verified by its digests."""
    registry: Annotated[str | None, Option(metavar="WHERE")] = None
    """The dataset registry: a file, a URL or a repository."""
    ignore_bench_version: Annotated[bool, Option()] = False
    """Run a dataset that wants another version of BenchFlow."""
    jobs_dir: Annotated[Folder, Option("-o", "--jobs-dir", path="any")] = Path("jobs")
    """Where results go."""
    job_name: Annotated[str | None, Option()] = None
    """The job's folder; without it the time."""
    rollout_name: str | None = None
    """The rollout's folder, where the file is for one."""
    max_retries: Annotated[int | None, Field(ge=0), Option("--retries", "--max-retries")] = None
    """Further attempts after an error that is worth one; 2 without it. Short for `retry: {max_retries: …}`."""
    loop_strategy: Annotated[LoopSettings | None, Also(read_loop, TEXT), Option(metavar="NAME[:K=V,…]")] = None
    """The driver that decides the prompts, with its parameters: `name:k=3,feedback=names`."""


@cache
def _job_keys(settings: type[JobSettings]) -> type[Settings]:
    fields = dict(JobKeys.model_fields)
    for name in sorted(settings.model_fields, key=lambda name: name not in JobSettings.model_fields):
        if name not in marked(settings, Internal):
            if name in fields:
                raise PluginError(f"a feature and the core both have a setting '{name}'.")
            fields[name] = settings.model_fields[name]
    made: dict[str, Any] = {name: (field.annotation, field) for name, field in fields.items()}
    return create_model("Job", __base__=Settings, **made)


def job_keys() -> type[Settings]:
    """Return the model of a job file: which tasks, the settings of the job, and those of features."""
    return _job_keys(composed(JobSettings))
