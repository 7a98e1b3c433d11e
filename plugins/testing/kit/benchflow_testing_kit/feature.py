"""Features: what can be said of one by planning it and letting it live through a rollout without an agent."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import pytest
import pytest_asyncio

from benchflow_core.contracts import (
    FeatureBox,
    FeatureJob,
    FeaturePlan,
    FeatureRun,
    FeatureSpec,
    FinishedRollout,
    HostEndpoint,
    ImageRef,
    ImageRequest,
    Sandbox,
    Snapshot,
    Step,
    Task,
)
from benchflow_core.plugins import registry
from benchflow_core.plugins.dotted import resolve
from benchflow_core.rollout.features import RolloutPlanView
from benchflow_core.settings.compose import composed
from benchflow_core.settings.models import RolloutConfig
from benchflow_testing_kit.audit import effects
from benchflow_testing_kit.boxed import BoxedSuite
from benchflow_testing_kit.launching import NoRewards
from benchflow_testing_kit.resolve import Resolved

if TYPE_CHECKING:
    from pydantic import BaseModel

__all__ = ["FeatureConformance", "RecordedRun"]

T = TypeVar("T")
Lifetime = Callable[[FeatureRun, FeatureBox, Path], AbstractAsyncContextManager[Any]]
LIFETIMES: Mapping[str, Lifetime] = {
    "box": lambda run, box, folder: run.box(box),
    "agent": lambda run, box, folder: run.agent(box),
    "turns": lambda run, box, folder: run.turns(box),
    "session": lambda run, box, folder: run.session(box, "agent"),
    "verification": lambda run, box, folder: run.verification(box, folder),
    "verifier": lambda run, box, folder: run.verifier(box),
}
NESTED = (("box",), ("box", "agent"), ("box", "agent", "turns", "session"), ("box", "verification", "verifier"))
"""The lifetimes that are open at one time, as a rollout nests them."""


class RecordedRun:
    """Satisfies `contracts.RunView` for a rollout in a folder: it keeps what a feature says."""

    def __init__(self, folder: Path, settings: Mapping[str, Any], env: Mapping[str, str] | None = None) -> None:
        self.settings, self.env = settings, env or {}
        self.allowed_env: Mapping[str, str] = {}
        self.dir, self.work_dir, self.cache_dir = (folder / name for name in ("rollout", "work", "cache"))
        for path in (self.dir, self.work_dir, self.cache_dir):
            path.mkdir(parents=True, exist_ok=True)
        self.saved: Path | None = None
        self.step: Step | None = None
        self.outcome: str | None = None
        self.events: list[tuple[str, Mapping[str, Any]]] = []
        self.notices: list[str] = []
        self.flags: list[str] = []
        self.findings: list[tuple[str, str, str]] = []
        self.secrets: list[str] = []

    def event(self, kind: str, data: Mapping[str, Any], *, role: str | None = None) -> None:
        self.events.append((kind, data))

    def notice(self, text: str) -> None:
        self.notices.append(text)

    def flag(self, name: str) -> None:
        self.flags.append(name)

    def finding(self, code: str, path: str, why: str) -> None:
        self.findings.append((code, path, why))

    def secret(self, *values: str) -> None:
        self.secrets += values

    def redact(self, folder: Path) -> None: ...

    async def image(self, *_: Any) -> ImageRef:
        pytest.skip("the feature makes an image of its own")

    async def start_box(self, *_: Any, **start: Any) -> Sandbox:
        pytest.skip("the feature starts a box of its own")

    async def forget(self, snapshot: Snapshot) -> None: ...

    async def once_per_job(self, key: str, make: Callable[[], Awaitable[T]]) -> T:
        return await make()

    async def ask_model(self, who: str, model: str | None, talk: Sequence[tuple[str, str]], system: str) -> str:
        pytest.skip("the feature asks a model")


class _Box:
    """Satisfies `contracts.FeatureBox`: one box, where the agent's user is the image's."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox, self.workdir, self.user, self.home, self.agents = (
            sandbox,
            sandbox.info.workdir,
            None,
            "/root",
            True,
        )

    @property
    def image(self) -> ImageRef:
        return ImageRef("kit")

    def home_of(self, role: str) -> str:
        return self.home

    async def show(self, endpoint: HostEndpoint, port: int | None = None) -> str:
        pytest.skip("the feature shows a server in the box")


class FeatureConformance(BoxedSuite):
    """A feature plans without side effects, and leaves every lifetime that it enters."""

    kind: ClassVar[str] = "feature"
    settings: ClassVar[frozenset[str]] = BoxedSuite.settings | {"feature_settings", "feature_task"}

    @pytest.fixture
    def feature_settings(self) -> Mapping[str, Any]:
        """The settings with which the feature takes part."""
        return {}

    @pytest.fixture
    def feature_task(self) -> Task:
        """The task of the rollout."""
        return Task(name="kit", path=Path(), format="kit", instruction="Do it.", dialect=NoRewards())

    @pytest.fixture
    def planning(
        self, resolved: Resolved, feature_settings: Mapping[str, Any], feature_task: Task
    ) -> Callable[[], FeaturePlan | None]:
        spec: FeatureSpec = resolved.spec
        if not spec.plan:
            pytest.skip("the feature has no plan")
        make, model = resolve(spec.plan, "the feature"), _model(spec)
        given = model(**feature_settings) if model else None
        view = RolloutPlanView(
            task=feature_task, digest="sha256:kit", scenes=(), roles={}, agents={},
            sandbox=registry().get("sandbox", "local"), capabilities=frozenset(),
            settings=_all_settings(spec, feature_settings), image=ImageRequest(), env={}, registry=registry(),
        )  # fmt: skip
        return lambda: make(given, view)

    @pytest.fixture
    def run(
        self, planning: Callable[[], FeaturePlan | None], spec: FeatureSpec, feature_settings: Any, tmp_path: Path
    ) -> FeatureRun:
        planned = planning()
        assert planned is not None, "it takes no part: the fixture `feature_settings` gives what it asks for"
        return planned.open(RecordedRun(tmp_path, _all_settings(spec, feature_settings)))

    @pytest_asyncio.fixture(loop_scope="class")
    async def feature_box(self, box: Sandbox) -> FeatureBox:
        """A box of the agent's, for tests of one's own."""
        return _Box(box)

    def test_settings_explain_themselves(self, spec: FeatureSpec) -> None:
        model = _model(spec)
        for name, field in model.model_fields.items() if model else ():
            assert not field.is_required(), f"the setting '{name}' has no default: every job would have to give it"
            assert field.description, f"the setting '{name}' has no docstring, which is its help"
        spare = sorted(set(spec.before) & set(spec.after))
        assert not spare, f"it cannot be entered both before and after {spare[0]}"

    def test_planning_is_pure(self, planning: Callable[[], FeaturePlan | None]) -> None:
        first = planning()
        assert isinstance(first, FeaturePlan), f"its plan is {first!r}, no FeaturePlan"
        with effects() as found:
            second = planning()
        assert not found, f"planning does {found}: that belongs into a lifetime"
        assert first == second, "two plans of one rollout differ"

    async def test_lifetimes_are_entered_and_left(
        self, run: FeatureRun, feature_box: FeatureBox, tmp_path: Path
    ) -> None:
        for _ in range(2):  # a task with two steps enters what is inside `box` again
            for names in NESTED:
                async with _nested(run, feature_box, names, tmp_path):
                    run.update("agent", 1, "agent_message_chunk", {"content": {"type": "text", "text": "hello"}})

    @pytest.mark.parametrize("names", NESTED, ids="-".join)
    async def test_an_error_passes_through(
        self, run: FeatureRun, feature_box: FeatureBox, tmp_path: Path, names: tuple[str, ...]
    ) -> None:
        class Ended(Exception):
            """What ends a rollout."""

        with pytest.raises(Ended):
            async with _nested(run, feature_box, names, tmp_path):
                raise Ended

    def test_its_keys_are_declared(self, run: FeatureRun, spec: FeatureSpec) -> None:
        for file, values in (("result", run.result()), ("lock", run.lock())):
            odd = sorted(set(values) - set(spec.keys.get(file, ())))
            assert not odd, f"it writes '{odd[0]}' to {file}.json, which its spec does not declare"
            json.dumps(values)

    def test_part_in_a_job(self, spec: FeatureSpec, feature_settings: Mapping[str, Any], tmp_path: Path) -> None:
        if not spec.job:
            pytest.skip("it has no part in jobs")
        given = _all_settings(spec, feature_settings)
        job: FeatureJob = resolve(spec.job, "the feature")(given, tmp_path, [])
        unknown = sorted(set(job.next()) - set(given))
        assert not unknown, f"it changes '{unknown[0]}', which is no setting of a rollout"
        job.finished(FinishedRollout("kit__1", "kit", tmp_path / "kit__1", 1.0))
        odd = sorted(set(job.summary()) - set(spec.keys.get("summary", ())))
        assert not odd, f"it writes '{odd[0]}' to summary.json, which its spec does not declare"
        json.dumps([job.next(), job.summary()])


def _model(spec: FeatureSpec) -> type[BaseModel] | None:
    return resolve(spec.settings, "the feature") if spec.settings else None


def _all_settings(spec: FeatureSpec, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a rollout, with those of the feature as they were given."""
    model = _model(spec)
    return {**vars(composed(RolloutConfig)(task_path=Path())), **(vars(model(**given)) if model else {})}


@asynccontextmanager
async def _nested(run: FeatureRun, box: FeatureBox, names: Sequence[str], folder: Path) -> AsyncIterator[None]:
    if not names:
        yield
        return
    async with LIFETIMES[names[0]](run, box, folder), _nested(run, box, names[1:], folder):
        yield
