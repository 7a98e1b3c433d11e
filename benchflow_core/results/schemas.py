"""The published shapes of what we write, as pydantic models: for JSON Schemas, for tests, and for readers.

Nothing imports this while a rollout runs. `bench schema NAME` prints one; `docs/schemas/` has them all.
"""

from __future__ import annotations

from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, create_model  # noqa: TID253

from benchflow_core.results import models
from benchflow_core.settings.compose import composed
from benchflow_core.settings.models import RolloutConfig
from benchflow_core.settings.written import recorded_names

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


class Begun(Exact):
    """`config.json`: what was asked for."""

    schema_version: Literal["1.0"]
    task_path: str
    agent: str
    model: str | None
    environment: str = Field(description="the older word for sandbox")
    sandbox: str
    driver: str
    driver_params: dict[str, Any] = Field(default_factory=dict, description="with the driver's defaults")
    scenes: list[dict[str, Any]]
    roles: dict[str, dict[str, Any]]
    attempt: int
    trial: int
    task_digest: str
    env_hash: str | None = None
    world: dict[str, Any] | None = None
    source: dict[str, Any] | None
    started_at: AwareDatetime
    plugins: list[Plugin]
    core_version: str
    dataset_name: str | None = None
    dataset_version: str | None = None


def _config() -> type[BaseModel]:
    """Return what is known when a rollout begins, and every setting of the core and of installed features."""
    kind = composed(RolloutConfig)
    named = {key: kind.model_fields[name] for name, key in recorded_names(kind).items()}
    settings: dict[str, Any] = {
        key: (field.annotation, Field(field.default, description=field.description))
        for key, field in named.items()
        if key not in Begun.model_fields
    }
    return create_model("Config", __base__=Begun, __doc__=Begun.__doc__, **settings)


Config = _config()


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
