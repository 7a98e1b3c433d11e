"""The one list of the fields of `result.json`: who writes, publishes, checks, indexes or shows them takes it from here.

A field without a value is always there. Its marks say who else wants it; any other text is what the schema says of it.
"""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, Final, Literal, get_args, get_origin, get_type_hints

__all__ = ["COLUMN", "DIGEST", "MARKS", "MOMENT", "ROW", "VERDICT", "Plugin", "Result", "Shape"]
__all__ += ["fields_of", "fields_of_type", "marked"]

COLUMN: Final = "column"
"""Lists and statistics need it: the index of results keeps it."""
VERDICT: Final = "verdict"
"""It is made anew where a rollout is verified again."""
ROW: Final = "row"
"""It is said of a finished rollout while its job goes on."""
MOMENT: Final = "moment"
"""A text that is a point in time, with its zone."""
DIGEST: Final = "digest"
"""A text that names a hash."""
MARKS: Final = frozenset({COLUMN, VERDICT, ROW, MOMENT, DIGEST})


class Shape:
    """Base of the shapes. Unknown keys are refused: a field that is not published is not written."""


class Plugin(Shape):
    kind: str
    name: str
    distribution: str
    version: str


class ErrorInfo(Shape):
    kind: Literal["infrastructure", "provider", "agent", "verifier", "task", "configuration", "cancelled"]
    code: str
    message: str
    remedy: str | None
    retryable: bool
    details: dict[str, Any]


class AgentResult(Shape):
    n_tool_calls: int
    n_skill_invocations: Annotated[int | None, "absent where no rollout took place"] = None
    n_prompts: int
    n_input_tokens: int | None
    n_output_tokens: int | None
    n_cache_read_tokens: int | None
    n_cache_creation_tokens: int | None
    total_tokens: Annotated[int | None, "null when no usage was captured"]
    cost_usd: float | None
    usage_source: str
    usage_details: dict[str, Any]


class FinalMetrics(Shape):
    total_prompt_tokens: int | None
    total_completion_tokens: int | None
    total_cost_usd: float | None


class StepResult(Shape):
    name: str
    rewards: dict[str, float] | None
    error: ErrorInfo | None
    verifier_error: ErrorInfo | None = None


class Result(Shape):
    """`result.json`. The outcome is derived from `rewards` and the two error channels, never stored."""

    schema_version: Literal["1.0"]
    task_name: Annotated[str, COLUMN, ROW]
    rollout_name: Annotated[str, COLUMN, ROW]
    job_name: Annotated[str, COLUMN]
    attempt: Annotated[int, COLUMN]
    trial: Annotated[int, COLUMN, ROW]
    arm: Annotated[str | None, COLUMN, ROW, "the cell of the job's matrix; null: there is none"] = None
    skill_mode: Annotated[str | None, COLUMN] = None
    rewards: Annotated[
        dict[str, float] | None,
        COLUMN,
        ROW,
        VERDICT,
        "`rewards.reward` is the score; null: unscored, never a zero",
    ]
    agent: Annotated[str, COLUMN, ROW]
    agent_name: str
    model: Annotated[str | None, COLUMN, ROW]
    sandbox: Annotated[str, COLUMN]
    sandbox_id: str | None
    image_fidelity: Annotated[Literal["exact", "substituted"], COLUMN, ROW]
    n_tool_calls: Annotated[int, COLUMN]
    n_skill_invocations: Annotated[int | None, COLUMN, "absent where no rollout took place"] = None
    n_prompts: Annotated[int, COLUMN]
    agent_result: Annotated[AgentResult, COLUMN]
    final_metrics: FinalMetrics
    error: Annotated[str | None, COLUMN, ROW]
    error_category: str | None
    error_info: Annotated[ErrorInfo | None, COLUMN, ROW]
    verifier_error: Annotated[str | None, COLUMN, ROW, VERDICT]
    verifier_error_category: Annotated[str | None, VERDICT]
    verifier_error_info: Annotated[ErrorInfo | None, COLUMN, ROW, VERDICT]
    verifier_isolation: Annotated[str | None, COLUMN, ROW, VERDICT]
    verdict: Annotated[dict[str, Any] | None, COLUMN, "which of `verdicts/` counts; absent: there is only one"] = None
    verification: Annotated[dict[str, Any] | None, VERDICT, "readings, contested, culprits, certificate"] = None
    settlement: Annotated[dict[str, Any] | None, "a person's judgement on a contested score"] = None
    findings: Annotated[list[dict[str, Any]], VERDICT]
    flags: Annotated[list[str], COLUMN, ROW]
    tests: Annotated[list[dict[str, Any]], VERDICT]
    notices: Annotated[list[str], ROW]
    step_results: Annotated[list[StepResult], VERDICT]
    loop: dict[str, Any] | None
    started_at: Annotated[str, COLUMN, MOMENT]
    finished_at: Annotated[str, COLUMN, MOMENT]
    timing: Annotated[dict[str, float], COLUMN, ROW]
    scenes: list[dict[str, Any]]
    roles: Annotated[dict[str, dict[str, Any]], COLUMN]
    task_digest: Annotated[str, COLUMN, DIGEST]
    env_hash: Annotated[str | None, "of the environment manifest or the services"] = None
    world: Annotated[dict[str, Any] | None, "the environment: name, hash, services, placement"] = None
    source: dict[str, Any] | None
    dataset_name: Annotated[str | None, COLUMN] = None
    dataset_version: Annotated[str | None, COLUMN] = None
    plugins: Annotated[list[Plugin], COLUMN]
    core_version: Annotated[str, COLUMN]


@cache
def fields_of(shape: Any) -> dict[str, tuple[Any, tuple[Any, ...]]]:
    """Return each field of a shape with its type and its marks, in order."""
    hints = get_type_hints(shape, include_extras=True)
    return {
        name: (get_args(hint)[0], get_args(hint)[1:]) if get_origin(hint) is Annotated else (hint, ())
        for name, hint in hints.items()
    }


def marked(mark: str) -> list[str]:
    """Return the fields of a result with a mark, in their order."""
    return [name for name, (_, marks) in fields_of(Result).items() if mark in marks]


@cache
def types_of(annotation: Any) -> frozenset[Any]:
    """Return what a field can be besides null: plain types or shapes."""
    if get_origin(annotation) is Literal:
        return frozenset(map(type, get_args(annotation)))
    if get_origin(annotation) in (list, dict):
        return frozenset({get_origin(annotation)})
    parts = [types_of(part) for part in get_args(annotation)]
    return frozenset().union(*parts) if parts else frozenset({annotation} - {type(None)})


def fields_of_type(*wanted: type) -> list[str]:
    """Return the fields of a result that are nothing but these types, or null."""
    return [name for name, (annotation, _) in fields_of(Result).items() if types_of(annotation) <= {*wanted}]
