"""Features in a rollout: which take part, what their plans come to together, and the lifetimes they enter and leave."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import field
from functools import partial
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, Protocol, TypeVar

from benchflow_core.contracts.agents import AuthOption
from benchflow_core.contracts.common import Layer, McpServer, Runtime
from benchflow_core.contracts.core import LoadedPlugin
from benchflow_core.contracts.features import FeatureBox, FeaturePlan, FeatureRun, FeatureSpec, RunView
from benchflow_core.contracts.sandboxes import ImageRequest, Snapshot
from benchflow_core.contracts.scenes import Role, Scene
from benchflow_core.contracts.tasks import Task
from benchflow_core.errors import BenchflowError, ConfigurationError, PluginError
from benchflow_core.plugins import Loaded, Registry
from benchflow_core.plugins.dotted import resolve
from benchflow_core.plugins.guard import failed
from benchflow_core.quick import dataclass
from benchflow_core.task import task_digest

__all__ = ["FeaturePlans", "FeatureRuns", "RolloutPlanView", "feature_settings", "guarded", "in_order", "plan_features"]

T = TypeVar("T")


def in_order(features: Sequence[Loaded]) -> list[Loaded]:
    """Sort features so that each stands after those it is entered after. Raises `PluginError` for a circle."""
    by_name = {feature.name: feature for feature in features}
    sorter: TopologicalSorter[str] = TopologicalSorter(dict.fromkeys(sorted(by_name), ()))
    for feature in features:
        sorter.add(feature.name, *(name for name in feature.spec.after if name in by_name))
        for name in feature.spec.before:
            if name in by_name:
                sorter.add(name, feature.name)
    try:
        return [by_name[name] for name in sorter.static_order()]
    except CycleError as error:
        circle = " before ".join(f"'{name}'" for name in error.args[1])
        raise PluginError(
            f"features want to be entered in a circle: {circle}.", remedy="Block one with -p no:NAME."
        ) from error


def refuse_shared_keys(features: Sequence[Loaded]) -> None:
    """Refuse two features that claim the same key of a file."""
    owners: dict[tuple[str, str], Loaded] = {}
    for feature in features:
        for file, keys in feature.spec.keys.items():
            for key in keys:
                other = owners.setdefault((file, key), feature)
                if other is not feature:
                    raise PluginError(
                        f"{other.who} and {feature.who} both claim the key '{key}' of {file}.json.",
                        remedy=f"Block one with -p no:feature:{feature.name}.",
                    )


def feature_settings(feature: Loaded, settings: Mapping[str, Any]) -> tuple[Any, bool]:
    """Return a feature's own settings, and whether any of them was given."""
    spec: FeatureSpec = feature.spec
    if not spec.settings:
        return None, False
    model = resolve(spec.settings, feature.who)
    defaults = {name: one.get_default(call_default_factory=True) for name, one in model.model_fields.items()}
    values = {name: settings.get(name, default) for name, default in defaults.items()}
    return model.model_construct(**values), values != defaults


@dataclass(frozen=True)
class RolloutPlanView:
    """What a feature may look at while it plans."""

    task: Task
    digest: str
    scenes: Sequence[Scene]
    roles: Mapping[str, Role]
    agents: Mapping[str, Loaded]
    sandbox: Loaded
    capabilities: frozenset[str]
    settings: Mapping[str, Any]
    image: ImageRequest
    env: Mapping[str, str]
    registry: Registry = field(repr=False)

    def digest_of(self, folder: Path) -> str:
        return task_digest(folder)

    def plugin(self, kind: str, name: str) -> Loaded:
        return self.registry.get(kind, name)

    def plugins(self, kind: str) -> list[Loaded]:
        return self.registry.all(kind)

    def mentioned(self, kind: str, text: str | None) -> list[Loaded]:
        return self.registry.mentioned(kind, text)


def plan_features(view: RolloutPlanView, saved: Path | None = None) -> FeaturePlans:
    """Ask every feature that is wanted for its plan, in their order.

    `saved`: the folder of a rollout that is only verified; features that saved nothing there take no part.
    """
    features = in_order(view.registry.all("feature"))
    if saved is not None:
        features = [one for one in features if one.spec.folder and (saved / one.spec.folder).is_dir()]
    refuse_shared_keys(features)
    planned = []
    for feature in features:
        settings, given = feature_settings(feature, view.settings)
        if feature.spec.plan and (given or feature.spec.applies(view.task)):
            make = resolve(feature.spec.plan, feature.who)
            plan = guarded(feature, "plan", partial(make, settings, view))
            if plan is not None:
                planned.append(PlannedFeature(feature, plan))
    return FeaturePlans(tuple(planned))


def guarded(feature: Loaded, function: str, call: Callable[[], T]) -> T:
    """Call a function of a feature; what it raises by mistake names the feature."""
    try:
        return call()
    except (BenchflowError, OSError):
        raise
    except Exception as error:
        raise failed(feature.who, function, error) from error


@dataclass(frozen=True)
class PlannedFeature:
    """A feature that takes part in a rollout, with its plan."""

    feature: Loaded
    plan: FeaturePlan


@dataclass(frozen=True)
class FeaturePlans:
    """The plans of all features of a rollout, and what they come to together."""

    planned: tuple[PlannedFeature, ...] = ()

    @property
    def plans(self) -> list[FeaturePlan]:
        return [one.plan for one in self.planned]

    def of(self, name: str) -> FeaturePlan | None:
        """The plan of the feature of that name, if it takes part."""
        return next((one.plan for one in self.planned if one.feature.name == name), None)

    @property
    def notices(self) -> list[str]:
        return [notice for plan in self.plans for notice in plan.notices]

    @property
    def layers(self) -> list[Layer]:
        return [layer for plan in self.plans for layer in plan.layers]

    @property
    def runtimes(self) -> list[Runtime]:
        return [runtime for plan in self.plans for runtime in plan.runtimes]

    @property
    def mcp_servers(self) -> list[McpServer]:
        return [server for plan in self.plans for server in plan.mcp_servers]

    @property
    def env(self) -> dict[str, str]:
        return self._merged("env", "variable")

    @property
    def homes(self) -> dict[str, str]:
        return self._merged("homes", "home of role")

    @property
    def auth(self) -> dict[str, AuthOption]:
        return self._merged("auth", "login of agent")

    @property
    def note(self) -> str:
        return "".join(plan.note for plan in self.plans)

    @property
    def ports(self) -> tuple[int, ...]:
        return tuple(port for plan in self.plans for port in plan.ports)

    @property
    def taken_hooks(self) -> list[Any]:
        return [hook for plan in self.plans for hook in plan.taken_hooks]

    @property
    def host_only(self) -> str:
        return next((plan.host_only for plan in self.plans if plan.host_only), "")

    @property
    def image(self) -> str | None:
        return next((plan.image for plan in self.plans if plan.image), None)

    @property
    def plugins(self) -> list[LoadedPlugin]:
        return [loaded for one in self.planned for loaded in (one.feature, *one.plan.plugins)]

    def scenes(self, asked: Sequence[Scene]) -> Sequence[Scene]:
        """Return the scenes that are played: those of a feature, else those that were asked for."""
        own = [one for one in self.planned if one.plan.scenes is not None]
        if len(own) > 1:
            raise ConfigurationError(f"{own[0].feature.who} and {own[1].feature.who} both bring scenes of their own.")
        return own[0].plan.scenes or asked if own else asked

    def build(self, request: ImageRequest, folder: Path) -> ImageRequest:
        for plan in self.plans:
            request = plan.build(request, folder)
        return request

    def _merged(self, name: str, what: str) -> dict[str, Any]:
        found: dict[str, tuple[Loaded, Any]] = {}
        for one in self.planned:
            for key, value in getattr(one.plan, name).items():
                other, before = found.setdefault(key, (one.feature, value))
                if before != value:
                    raise ConfigurationError(f"{other.who} and {one.feature.who} both set the {what} {key}.")
        return {key: value for key, (_, value) in found.items()}


class _NamedLifetime(Generic[T]):
    """A lifetime of a feature. What it raises itself names the feature; what passes through it stays as it is."""

    def __init__(self, feature: Loaded, name: str, inner: AbstractAsyncContextManager[T]) -> None:
        self._feature, self._name, self._inner = feature, name, inner

    async def __aenter__(self) -> T:
        try:
            return await self._inner.__aenter__()
        except (BenchflowError, OSError):
            raise
        except Exception as error:
            raise failed(self._feature.who, self._name, error) from error

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        try:
            return await self._inner.__aexit__(kind, error, trace)
        except (BenchflowError, OSError):
            raise
        except Exception as own:
            if own is error:
                raise
            raise failed(self._feature.who, self._name, own) from own


class BoxInLifetimes(FeatureBox, Protocol):
    """A box that features enter: what is shown in it goes when the stack of the lifetime does."""

    def within(self, stack: AsyncExitStack) -> FeatureBox: ...


class FeatureRuns:
    """The features of one rollout while it lives."""

    def __init__(self, plans: FeaturePlans, view: Callable[[Loaded], RunView]) -> None:
        self._runs: list[tuple[Loaded, FeatureRun]] = []
        for one in plans.planned:
            opened = guarded(one.feature, "open", partial(one.plan.open, view(one.feature)))
            self._runs.append((one.feature, opened))
        self._open: dict[str, AsyncExitStack] = {}

    def __bool__(self) -> bool:
        return bool(self._runs)

    @asynccontextmanager
    async def lifetime(self, name: str, box: BoxInLifetimes, *args: Any) -> AsyncIterator[list[Any]]:
        """Enter a lifetime of every feature in their order; leave in the reverse. Gives what they yield."""
        async with AsyncExitStack() as stack:
            yield await self._enter(stack, name, box, *args)

    async def enter(self, name: str, box: BoxInLifetimes) -> None:
        """Enter a lifetime that `leave` ends."""
        async with AsyncExitStack() as stack:
            await self._enter(stack, name, box)
            self._open[name] = stack.pop_all()

    async def leave(self, name: str) -> None:
        """Leave a lifetime, if it was entered."""
        if (stack := self._open.pop(name, None)) is not None:
            await stack.aclose()

    async def _enter(self, stack: AsyncExitStack, name: str, box: BoxInLifetimes, *args: Any) -> list[Any]:
        return [
            await stack.enter_async_context(_NamedLifetime(feature, name, getattr(run, name)(box.within(stack), *args)))
            for feature, run in self._runs
        ]

    @asynccontextmanager
    async def variables(self, name: str, box: BoxInLifetimes, *args: Any) -> AsyncIterator[dict[str, str]]:
        """Enter a lifetime that gives variables."""
        async with self.lifetime(name, box, *args) as found:
            yield {key: value for one in found for key, value in one.items()}

    @asynccontextmanager
    async def verification(self, box: BoxInLifetimes, folder: Path) -> AsyncIterator[Snapshot | None]:
        """Enter a verification; gives a snapshot that a feature took of the box."""
        async with self.lifetime("verification", box, folder) as found:
            yield next((snapshot for snapshot in found if snapshot is not None), None)

    def update(self, role: str, turn: int | None, kind: str, data: Mapping[str, Any]) -> None:
        for feature, run in self._runs:
            guarded(feature, "update", partial(run.update, role, turn, kind, data))

    async def save(self, folder: Path) -> None:
        """Write what another rollout goes on from, each feature below its own folder."""
        for _, run in self._runs:
            await run.save(folder)

    def run(self, name: str) -> FeatureRun | None:
        """The feature's part of this rollout, by its name or by its folder."""
        return next((run for feature, run in self._runs if name in (feature.name, feature.spec.folder)), None)

    def keys(self, file: str) -> dict[str, Any]:
        """Return the features' keys of `result`, `config` or `lock`; what a feature did not declare is refused."""
        found: dict[str, Any] = {}
        method = "lock" if file == "lock" else "result"
        for feature, run in self._runs:
            own, declared = guarded(feature, method, getattr(run, method)), feature.spec.keys.get(file, ())
            if file != "config" and (odd := sorted(set(own) - set(declared))):
                raise PluginError(f"{feature.who} writes '{odd[0]}' to {file}.json, which it does not declare.")
            found.update({key: value for key, value in own.items() if key in declared})
        return found
