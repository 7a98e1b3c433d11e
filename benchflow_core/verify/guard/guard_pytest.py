# Runs in interpreters of the box, down to Python 3.6, not in ours.
# ruff: noqa: PTH100, PTH109, PTH110, PTH112, PTH118, PTH119
# mypy: ignore-errors
"""What the guard changes in the verifier's pytest: configuration and plugins that the agent added do not count.

Placed as `benchflow_guard_pytest.py`. Works on pytest 6 and later; others go on without it.
"""

import os
import sys
import types

_HARMLESS = (
    "pythonpath",
    "markers",
    "anyio_mode",
    "asyncio_mode",
    "asyncio_default_fixture_loop_scope",
    "asyncio_default_test_loop_scope",
    "django_settings_module",
)
"""What a project says about itself: where its modules are, not which tests run or how."""


class Loader:
    """Loads a module of pytest as it is, then puts our functions in front of its own."""

    def __init__(self, inner: "object", origin: "object") -> None:
        self.inner, self.origin = inner, origin

    def __getattr__(self, name: str) -> "object":
        return getattr(self.inner, name)

    def create_module(self, spec: "object") -> "object":
        return self.inner.create_module(spec)

    def exec_module(self, module: "types.ModuleType") -> None:
        self.inner.exec_module(module)
        if module.__name__ == "_pytest.config.findpaths":
            _patch_configuration(module, self.origin)
        else:
            _patch_plugins(module, self.origin)


def _patch_configuration(module: "types.ModuleType", origin: "object") -> None:
    """pytest 9.2 keeps a loader for each name of a configuration file; since pytest 6 there is one for all of them."""

    def guarded(original):
        def load(filepath, *rest, **more):
            place = os.path.abspath(str(filepath))
            if not origin.agents(place) or _tests_are_agents(origin):
                return original(filepath, *rest, **more)
            if place in origin.asked and "pytest" in os.path.basename(place):
                return original(filepath, *rest, **more)
            origin.said.add(("config", str(filepath)))
            theirs = original(filepath, *rest, **more) or {}
            kept = {key: value for key, value in theirs.items() if key.lower() in _HARMLESS}
            copy = origin.configs.get(place)
            images = original(type(filepath)(copy), *rest, **more) if copy is not None else None
            return kept or None if images is None else dict(images, **kept)

        return load

    loaders = getattr(module, "CONFIG_LOADERS_BY_NAME", {})
    for name in loaders:
        loaders[name] = guarded(loaders[name])
    if hasattr(module, "load_config_dict_from_file"):
        module.load_config_dict_from_file = guarded(module.load_config_dict_from_file)


def _patch_plugins(module: "types.ModuleType", origin: "object") -> None:
    manager = getattr(module, "PytestPluginManager", None)
    if manager is None or not hasattr(manager, "_importconftest"):
        return
    import_conftest, load_entry_points = manager._importconftest, manager.load_setuptools_entrypoints

    def conftest(self, conftestpath, *rest, **more):
        if os.path.abspath(str(conftestpath)) in origin.asked:
            origin.say_at_once(str(conftestpath))
        elif origin.agents(str(conftestpath)) and not _tests_are_agents(origin):
            origin.said.add(("config", str(conftestpath)))
            return types.ModuleType("conftest")
        return import_conftest(self, conftestpath, *rest, **more)

    def entry_points(self, group, *rest, **more):
        with _Hidden(origin):
            return load_entry_points(self, group, *rest, **more)

    def init(self, *args, **more):
        create(self, *args, **more)
        self.register(_own_tests_alone(origin), "benchflow-guard")

    create, manager.__init__ = manager.__init__, init
    manager._importconftest = conftest
    manager.load_setuptools_entrypoints = entry_points


def _own_tests_alone(origin: "object") -> "object":
    """A plugin: among tests of the verifier's own, files of the agent that nobody named are not collected."""
    mixed = {}

    def ignored(path):
        name = os.path.basename(path)
        if (name.endswith(".py") and "test" not in name) or os.path.isdir(path) or not origin.agents(path):
            return None
        for folder in _named():
            if os.path.isdir(folder) and path.startswith(folder.rstrip("/") + "/"):
                if folder not in mixed:
                    mixed[folder] = _has_tests_of_the_verifier(origin, folder)
                if mixed[folder]:
                    origin.said.add(("config", path))
                    return True
        return None

    first = sys.modules["pluggy"].HookimplMarker("pytest")(tryfirst=True)

    class Plugin:
        if int(sys.modules["_pytest"].__version__.partition(".")[0]) >= 7:

            @first
            def pytest_ignore_collect(self, collection_path):
                return ignored(str(collection_path))

            @first
            def pytest_pycollect_makemodule(self, module_path):
                origin.say_at_once(str(module_path))

        else:

            @first
            def pytest_ignore_collect(self, path):
                return ignored(str(path))

            @first
            def pytest_pycollect_makemodule(self, path):
                origin.say_at_once(str(path))

    return Plugin()


def _has_tests_of_the_verifier(origin: "object", path: str) -> bool:
    for folder, folders, files in os.walk(path):
        folders[:] = [name for name in folders if name not in ("__pycache__", "node_modules", ".git")]
        if any(n.endswith(".py") and "test" in n and origin.verifiers(os.path.join(folder, n)) for n in files):
            return True
    return False


def _named() -> "list[str]":
    """What this pytest was told to run."""
    words = [word.split("::")[0] for word in sys.argv[1:] if not word.startswith("-")]
    return [os.path.abspath(word) for word in words if os.path.exists(word)] or [os.getcwd()]


def _tests_are_agents(origin: "object") -> bool:
    """Everything this pytest was told to run is the agent's own: then its configuration is part of the work."""
    return all(_agents_alone(origin, path) for path in _named())


def _agents_alone(origin: "object", path: str) -> bool:
    """The agent's, and for a folder: the verifier has put none of its own tests there."""
    if not os.path.isdir(path):
        return bool(origin.agents(path))
    if not origin.in_tree(path) and not origin.in_tree(os.path.realpath(path)):
        return False
    for folder, folders, files in os.walk(path):
        folders[:] = [name for name in folders if name != "__pycache__"]
        for name in files:
            if name.endswith(".py") and not origin.agents(os.path.join(folder, name)):
                return False
    return True


class _Hidden:
    """While plugins are looked for, distributions that the agent installed are not seen."""

    def __init__(self, origin: "object") -> None:
        self.origin = origin
        self.changed = []

    def __enter__(self) -> None:
        for name in ("importlib.metadata", "importlib_metadata"):
            module = sys.modules.get(name)
            if module is not None:
                self.changed.append((module, module.distributions))
                module.distributions = self._without_agents(module.distributions)

    def __exit__(self, *_: "object") -> None:
        for module, original in self.changed:
            module.distributions = original

    def _without_agents(self, original):
        def distributions(**more):
            for found in original(**more):
                place = str(getattr(found, "_path", "")) + "/entry_points.txt"
                if not self.origin.agents(place):
                    yield found
                elif any(entry.group == "pytest11" for entry in found.entry_points):
                    self.origin.said.add(("config", place))

        return distributions
