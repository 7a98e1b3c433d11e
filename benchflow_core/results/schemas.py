"""The published shapes of what we write, as pydantic models: for JSON Schemas, for tests, and for readers.

Nothing imports this while a rollout runs. `bench schema NAME` prints one; `docs/schemas/` has them all.
"""

from __future__ import annotations

from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, create_model  # noqa: TID253

from benchflow_core.results import models

__all__ = ["SCHEMAS", "json_schema"]


_DIGEST = r"^sha256:[0-9a-f]{64}$"


class Exact(BaseModel):
    """Unknown keys are refused: a field that is not published is not written."""

    model_config = ConfigDict(extra="forbid")


def _model(shape: Any) -> type[BaseModel]:
    """Return the pydantic model of a shape: its fields, what they mean, and which of them may be absent."""
    found: dict[str, Any] = {}
    for name, (annotation, marks) in models.fields_of(shape).items():
        doc = next((mark for mark in marks if mark not in models.MARKS), None)
        about = Field(getattr(shape, name, ...), description=doc, pattern=_DIGEST if models.DIGEST in marks else None)
        found[name] = (AwareDatetime if models.MOMENT in marks else _type(annotation), about)
    return create_model(shape.__name__, __base__=Exact, __doc__=shape.__doc__, **found)


def _type(annotation: Any) -> Any:
    """Return an annotation with the models of the shapes in it."""
    if isinstance(annotation, type) and issubclass(annotation, models.Shape):
        return _MODELS.setdefault(annotation, _model(annotation))
    if get_origin(annotation) is list:
        return list[_type(get_args(annotation)[0])]  # type: ignore[misc]
    if get_origin(annotation) is UnionType:
        return Union[tuple(_type(part) for part in get_args(annotation))]  # noqa: UP007 - made of parts
    return annotation


_MODELS: dict[Any, type[BaseModel]] = {}
Result = _type(models.Result)
Plugin: Any = _type(models.Plugin)


class Config(Exact):
    """`config.json`: what was asked for."""

    schema_version: Literal["1.0"]
    task_path: str
    agent: str
    model: str | None
    reasoning_effort: str | None
    environment: str = Field(description="the older word for sandbox")
    sandbox: str
    sandbox_options: dict[str, str]
    sandbox_user: str | None
    sandbox_setup_timeout: float
    sandbox_locked_paths: list[str] = Field(default_factory=list)
    agent_env: dict[str, str] = Field(description="without variables whose name says secret")
    agent_options: dict[str, str]
    agent_idle_timeout_sec: float | None
    timeout_sec: float | None
    permissions: Literal["allow", "reject", "ask"]
    client_methods: Literal["none", "files", "terminal", "all"] = "none"
    auth: Literal["gateway", "native"] = "gateway"
    isolation: str | None
    contested: Literal["clean", "as-left", "unscored"] = "clean"
    certificates: bool = True
    verify: bool
    allow_substitute: bool
    allow_env: list[str]
    base_image_override: str | None
    context_root: str | None = None
    driver: str
    driver_params: dict[str, Any] = Field(default_factory=dict, description="with the driver's defaults")
    prompts: list[str | None] | None = None
    scenes: list[dict[str, Any]]
    scenes_as_written: list[dict[str, Any]] = Field(
        default_factory=list, description="with all settings of their roles"
    )
    max_user_rounds: int | None = None
    user_timeout: float | None = None
    oracle_access: bool = False
    uploads: dict[str, str] = Field(default_factory=dict)
    skills_dir: str | None = None
    job_mode: str = "parallel-independent"
    state: dict[str, Any] | None = Field(None, description="the part of the environment that is there")
    usage_tracking: Literal["auto", "required", "off"] = "auto"
    gateway: str | None = None
    gateway_options: dict[str, str] = Field(default_factory=dict)
    helper_models: Literal["same", "own", "refuse"] = "same"
    max_rollout_tokens: int | None = None
    max_rollout_cost: float | None = None
    record: bool = False
    replay: str | None = None
    keep_state: Literal["none", "failed", "all"] = "none"
    roles: dict[str, dict[str, Any]]
    attempt: int
    trial: int
    arm: str | None = None
    skill_mode: str | None = None
    task_digest: str
    services: list[str] = Field(default_factory=list)
    environment_manifest: str | None = None
    env_hash: str | None = None
    world: dict[str, Any] | None = None
    source: dict[str, Any] | None
    started_at: AwareDatetime
    plugins: list[Plugin]
    core_version: str
    dataset_name: str | None = None
    dataset_version: str | None = None


class Timing(Exact):
    """`timing.json`, in seconds."""

    schema_version: Literal["1.0"]
    total: float
    environment_setup: float | None = None
    agent_setup: float | None = None
    agent_execution: float | None = None
    verifier: float | None = None


class SandboxFile(Exact):
    """`sandbox.json`."""

    schema_version: Literal["1.0"]
    sandbox_id: str | None
    provider: str
    created_at: AwareDatetime


class Event(Exact):
    """One line of `events.jsonl`."""

    v: Literal[1]
    seq: int
    time: AwareDatetime
    at: float = Field(description="seconds since the rollout began, monotonic")
    kind: str
    scene: str | None = None
    role: str | None = None
    turn: int | None = None
    session: str | None = None
    data: Any


class Lock(BaseModel):
    """`lock.json`: what another lab needs to repeat the rollout."""

    schema_version: Literal["1.0"]
    core: dict[str, str]
    plugins: list[Plugin]
    agents: dict[str, dict[str, Any]]
    task: dict[str, Any]
    image: dict[str, Any] | None
    world: dict[str, Any] | None = Field(None, description="the environment, with all that its manifest says")
    sandbox: dict[str, Any]
    host: dict[str, Any]
    verification: dict[str, Any]
    drive: dict[str, Any]
    roles: dict[str, dict[str, Any]]
    skills: dict[str, str] = Field({}, description="folder to digest, of those that the task does not bring itself")
    limits: dict[str, float | None]
    settings: dict[str, Any]
    learner: dict[str, Any] | None = Field(None, description="generation and digest of what it was given to learn from")
    concurrency: int
    started_at: AwareDatetime
    finished_at: AwareDatetime


class Summary(BaseModel):
    """`summary.json` of a job."""

    schema_version: Literal["1.0"]
    job_name: str
    total: int
    passed: int
    failed: int
    errored: int
    verifier_errored: int
    scored: int
    unscored: int
    unscored_by_kind: dict[str, int]
    coverage: float
    agent: str | None = Field(None, description="all agents of all arms and roles, separated by commas")
    model: str | None = Field(None, description="all models, as the agents")
    score: str | None = Field(description="null with several arms, as every number over all rollouts: see `arms`")
    score_ratio: float | None
    score_bounds: tuple[float, float] | None
    score_error: float | None = Field(description="standard error, clustered by task; null with fewer than two tasks")
    score_interval: tuple[float, float] | None = Field(description="95 %, Wilson's, clustered by task")
    mean_reward: float | None
    mean_reward_error: float | None
    tasks: int
    pass_at_k: dict[str, dict[str, float]] = Field({}, description="added by the commands that read results")
    pass_hat_k: dict[str, dict[str, float]] = Field({}, description="as pass_at_k")
    flaky_tasks: list[dict[str, Any]] = Field([], description="as pass_at_k")
    strata: dict[str, dict[str, Any]] = Field(description="a score per image fidelity and isolation, where mixed")
    arms: dict[str, dict[str, Any]] = Field({}, description="of a job with several arms: the summary of each")
    error_categories: dict[str, int]
    image_fidelity: dict[str, int]
    verifier_isolation: dict[str, int]
    contested: int = Field(0, description="rollouts whose readings differ and that no evidence settles")
    contested_scores: dict[str, float | None] = Field({}, description="`score_ratio` under each choice")
    learner: dict[str, Any] | None = Field(None, description="of a sequential-shared job: generations, head, best")
    elapsed_sec: float


SCHEMAS: dict[str, type[BaseModel]] = {
    "config": Config,
    "event": Event,
    "lock": Lock,
    "result": Result,
    "sandbox": SandboxFile,
    "summary": Summary,
    "timing": Timing,
}
"""By the name of the file, without its ending."""


def json_schema(name: str) -> dict[str, Any]:
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **SCHEMAS[name].model_json_schema()}
