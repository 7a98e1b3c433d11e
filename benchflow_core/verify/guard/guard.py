# Runs in interpreters of the box, down to Python 3.6, not in ours.
# ruff: noqa: PTH100, PTH109, PTH113, PTH116, PTH118, PTH119, PTH120, PTH123, PTH208
# mypy: ignore-errors
"""Inside every Python of the verifier's box: what the agent added does not stand in for what the image brought.

Placed as `benchflow_guard.py`. It imports nothing that Python has not loaded by itself at this point, for that could
already be the agent's; and nothing that an agent's own program could notice: when the program that is started is the
agent's, the guard steps back.

The agent's paths come in `origin.txt`, by folder and name with their size; what is not listed is the image's or ours.
"""

import os
import sys

_bootstrap = sys.modules["_frozen_importlib"]
_external = sys.modules["_frozen_importlib_external"]
_PYTEST = ("_pytest.config", "_pytest.config.findpaths")
_LIBRARY = os.path.dirname(os.__file__) + "/"
_IMPORT_SYSTEM = ("<frozen importlib", "<frozen runpy", "<frozen zipimport")


class Origin:
    """Whose a path is."""

    def __init__(self, folder: str) -> None:
        self.files, self.trees, self.names = {}, set(), set()
        self.configs, self.editable, self.python_path = {}, {}, []
        self.said, self.home, self.asked = set(), folder, set()
        with open(folder + "/origin.txt", encoding="utf-8", errors="surrogateescape") as file:
            for line in file.read().split("\n"):
                self._take(line[:1], [_plain(field) for field in line[1:].split("\t")])
        self.made = os.stat(folder + "/origin.txt").st_ctime

    def _take(self, kind: str, fields: "list[str]") -> None:
        if kind == "d":
            self.folder = self.files.setdefault(fields[0], {})
        elif kind == "f":
            self.folder[fields[1]] = int(fields[0])
            self.names.add(fields[1].partition(".")[0])
        elif kind == "t":
            self.trees.add(fields[0])
        elif kind == "c":
            self.configs[fields[0]] = fields[1]
        elif kind == "e":
            self.editable[fields[0]] = fields[1]
        elif kind == "p":
            self.python_path.append(fields[0])
        elif kind == "a":
            self.asked.add(fields[0])

    def agents(self, path: "str | None") -> bool:
        """Did the agent put it there, and has the verifier not written it anew?"""
        if not path:
            return False
        return any(self._listed(one) or self._archived(one) for one in {os.path.abspath(path), os.path.realpath(path)})

    def _archived(self, path: str) -> bool:
        """Inside an archive of the agent's, which Python takes for a folder."""
        while len(path) > 1:
            path = os.path.dirname(path)
            if self.files.get(os.path.dirname(path), {}).get(os.path.basename(path), -1) >= 0:
                return True
        return False

    def _listed(self, path: str) -> bool:
        folder, name = os.path.split(path)
        size = self.files.get(folder, {}).get(name)
        if size is None:
            return False
        try:
            now = os.lstat(path)
        except OSError:
            return True
        # A new owner or mode also changes the time, so only other contents make it the verifier's.
        return size < 0 or now.st_size == size or now.st_ctime <= self.made

    def verifiers(self, path: str) -> bool:
        """Did the verifier write it?"""
        try:
            return os.lstat(path).st_ctime > self.made and not self.agents(path)
        except OSError:
            return False

    def say_at_once(self, path: str) -> None:
        """That it runs, before it does: it may end the process."""
        if self.agents(path) and ("ran", path) not in self.said and len(self.said) < 100:
            self.said.add(("ran", path))
            _say(self.home, self)

    def in_tree(self, path: str) -> bool:
        """Below a folder that the agent made, whoever wrote there since."""
        while len(path) > 1:
            if path in self.trees:
                return True
            path = os.path.dirname(path)
        return False


class Finder:
    """First on `sys.meta_path`: the image's module where the agent added one of the same name."""

    def __init__(self, origin: Origin) -> None:
        self.origin = origin
        self.busy = False

    def find_spec(self, name: str, path: "object" = None, target: "object" = None) -> "object":
        if self.busy:
            return None
        if name in _PYTEST:
            return self._patched(name, path)
        last = name.rpartition(".")[2]
        if last not in self.origin.names and "__init__" not in self.origin.names:
            return None
        found = _external.PathFinder.find_spec(name, path)
        if found is not None and not self.origin.agents(_place(found)):
            return self._compiled_anew(found)
        if found is None or self._wanted_by_agent():
            return None
        if found.origin in self.origin.asked and not self._in_a_library(_importer()):
            self.origin.say_at_once(found.origin)
            return None
        instead = _of_the_image(self.origin, name, last, sys.path if path is None else path) or self._emptied(found)
        if instead is None and self._wanted_by_the_library(name):
            self.origin.said.add(("module", str(_place(found))))
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        if instead is not None:
            self.origin.said.add(("module", str(_place(found))))
        else:
            self.origin.say_at_once(str(_place(found)))
        return instead

    def _compiled_anew(self, found: "object") -> "object":
        """The verifier's own module at a place for which the agent has left a compiled one."""
        if not found.cached or not self.origin.agents(found.cached):
            return None
        if type(found.loader) is not _external.SourceFileLoader:
            return None
        found.loader, found.cached = Uncached(found.loader.name, found.loader.path), None
        return found

    def _emptied(self, found: "object") -> "object":
        """The agent's package into which the verifier has put tests of its own: they are loaded without its code."""
        folder, name = os.path.split(found.origin or "")
        if not found.submodule_search_locations or not name.startswith("__init__."):
            return None
        if not any(n.endswith(".py") and self.origin.verifiers(os.path.join(folder, n)) for n in os.listdir(folder)):
            return None
        found.loader, found.cached = Empty(), None
        return found

    def _wanted_by_agent(self) -> bool:
        """Is it the agent's own code that imports? Then it gets what it would get anywhere."""
        code = _importer()
        return code is not None and self.origin.agents(code.co_filename)

    @staticmethod
    def _in_a_library(code: "object") -> bool:
        file = code.co_filename if code is not None else _LIBRARY
        return file.startswith(_LIBRARY) or "-packages/" in file

    def _wanted_by_the_library(self, name: str) -> bool:
        """Does the standard library try for it? What it does not have itself it gets from nobody the tests do not know.

        A name that stands in an `import` statement is among those of the code; one that was handed over is not.
        """
        code = _importer()
        if code is None or not code.co_filename.startswith(_LIBRARY) or "-packages/" in code.co_filename:
            return False
        return any(one == name or one.startswith(name + ".") for one in code.co_names)

    def _patched(self, name: str, path: "object") -> "object":
        self.busy = True
        try:
            found = _bootstrap._find_spec(name, path)
        finally:
            self.busy = False
        if found is None or found.loader is None or self.origin.agents(_place(found)):
            return None
        found.loader = sys.modules["benchflow_guard_pytest"].Loader(found.loader, self.origin)
        return found


class Uncached(_external.SourceFileLoader):
    """Reads the source and nothing else."""

    def path_stats(self, path: str) -> "object":
        raise OSError("the compiled file is not looked at")


class Empty:
    """Loads nothing."""

    def create_module(self, spec: "object") -> None:
        return None

    def exec_module(self, module: "object") -> None:
        return None


def _importer() -> "object":
    """The code that imports, past the import system."""
    frame = sys._getframe(2)
    while frame is not None:
        file = frame.f_code.co_filename
        if file != __file__ and not file.startswith(_IMPORT_SYSTEM) and "/importlib/" not in file:
            return frame.f_code
        frame = frame.f_back
    return None


class Editable:
    """Last on `sys.meta_path`: where an editable install said its packages are, as data instead of start-up code."""

    def __init__(self, places: "dict[str, str]") -> None:
        self.places = places

    def find_spec(self, name: str, path: "object" = None, target: "object" = None) -> "object":
        place = self.places.get(name)
        if place is None:
            return None
        if name == "distutils":
            return self._of_setuptools(name)
        if os.path.isfile(place + "/__init__.py"):
            file, places = place + "/__init__.py", [place]
        else:
            file, places = place if place.endswith(".py") else place + ".py", None
        if not os.path.isfile(file):
            return None
        return _external.spec_from_file_location(name, file, submodule_search_locations=places)

    @staticmethod
    def _of_setuptools(name: str) -> "object":
        """setuptools puts its own in the place of what Python 3.12 no longer has."""
        try:
            __import__("setuptools")
        except ImportError:
            return None
        module = sys.modules.get(name)
        if module is None:
            return None
        found = _bootstrap.ModuleSpec(name, There(module))
        found.submodule_search_locations = module.__path__
        return found


class There:
    """Has loaded it."""

    def __init__(self, module: "object") -> None:
        self.module = module

    def create_module(self, spec: "object") -> "object":
        return self.module

    def exec_module(self, module: "object") -> None:
        return None


def start(folder: str, before: "set[str]") -> None:
    """Called by `sitecustomize` or by a line in a `.pth`, whichever is first. `before`: the modules loaded so far."""
    if getattr(sys, "_benchflow_guard", False):
        sys.path[:] = [entry for entry in sys.path if entry != folder]
        return
    sys._benchflow_guard = True
    origin = Origin(folder)
    if origin.editable:
        sys.meta_path.append(Editable(origin.editable))
    given = [] if sys.flags.ignore_environment else os.environ.get("PYTHONPATH", "").split(os.pathsep)
    at = sys.path.index(folder) if folder in given and folder in sys.path else None
    sys.path[:] = [entry for entry in sys.path if entry != folder]
    if at is not None:
        sys.path[at:at] = [entry for entry in origin.python_path if entry not in sys.path]
    runner = _agents_program(origin)
    if runner is not None:
        if "pytest" in runner:
            origin.said.add(("ran", runner))
            _say(folder, origin)
        _step_back(folder, origin, before)
        return
    run_as("benchflow_guard_pytest", _external.spec_from_file_location("x", folder + "/benchflow_guard_pytest.py"))
    sys.meta_path.insert(0, Finder(origin))
    import atexit

    atexit.register(_report, folder, origin)


def chain(name: str) -> None:
    """Run the module of this name that comes next, in place of the one that is running."""
    found = _external.PathFinder.find_spec(name)
    if found is not None and found.loader is not None:
        run_as(name, found)


def run_as(name: str, found: "object") -> None:
    module = _bootstrap.module_from_spec(found)
    sys.modules[name] = module
    found.loader.exec_module(module)


def _step_back(folder: str, origin: Origin, before: "set[str]") -> None:
    """The agent's program and all it starts find what the image alone would give them."""
    rest = [e for e in os.environ.get("PYTHONPATH", "").split(os.pathsep) if e and e != folder]
    rest = list(dict.fromkeys(origin.python_path + rest))
    if rest:
        os.environ["PYTHONPATH"] = os.pathsep.join(rest)
    else:
        os.environ.pop("PYTHONPATH", None)
    for name in set(sys.modules) - before - {"sitecustomize", "usercustomize"}:
        del sys.modules[name]


def _agents_program(origin: Origin) -> "str | None":
    """Where the program is that is started, if it is the agent's."""
    kind, value = _program()
    if kind == "script":
        return value if origin.agents(value) else None
    if kind == "module":
        top = value.partition(".")[0]
        if top in sys.builtin_module_names:
            return None
        # Python itself will look here too, but has not said so yet.
        path = sys.path if getattr(sys.flags, "safe_path", False) else [os.getcwd(), *sys.path]
        found = _external.PathFinder.find_spec(top, path)
        if found is None:
            return value if top in origin.editable else None
        place = _place(found)
        return place if origin.agents(place) and _of_the_image(origin, top, top, path) is None else None
    return None


def _program() -> "tuple[str, str]":
    """What this interpreter was asked to run: `script`, `module`, or anything else."""
    words = getattr(sys, "orig_argv", None)
    if words is None:
        try:
            with open("/proc/self/cmdline", "rb") as file:
                words = [os.fsdecode(word) for word in file.read().split(b"\0")[:-1]]
        except OSError:
            return "", ""
    rest = iter(words[1:])
    for word in rest:
        if word == "-" or not word.startswith("-"):
            return "script", word
        if word.startswith("--"):
            if word == "--check-hash-based-pycs":
                next(rest, "")
            continue
        for place, letter in enumerate(word[1:], 2):
            if letter == "c":
                return "code", ""
            if letter == "m":
                return "module", word[place:] or next(rest, "")
            if letter in "WX":
                if not word[place:]:
                    next(rest, "")
                break
    return "", ""


def _of_the_image(origin: Origin, name: str, last: str, path: "object") -> "object":
    """The module that is found where nothing of the agent's counts."""
    for entry in path:
        for file, package in _candidates(entry or os.getcwd(), last):
            if os.path.isfile(file) and not origin.agents(file):
                places = [os.path.dirname(file)] if package else None
                return _external.spec_from_file_location(name, file, submodule_search_locations=places)
    return None


def _place(spec: "object") -> "str | None":
    if spec.has_location:
        return spec.origin
    places = list(spec.submodule_search_locations or ())
    return places[0] if places else None


def _candidates(folder: str, name: str) -> "list[tuple[str, bool]]":
    """Where a folder may hold a module, in the order in which Python looks."""
    suffixes = sys.modules["_imp"].extension_suffixes() + _external.SOURCE_SUFFIXES + _external.BYTECODE_SUFFIXES
    base = os.path.join(folder, name)
    return [(base + "/__init__" + s, True) for s in suffixes] + [(base + s, False) for s in suffixes]


def _plain(field: str) -> str:
    return field.replace("\\n", "\n").replace("\\t", "\t").replace("\\b", "\\") if "\\" in field else field


def _report(folder: str, origin: Origin) -> None:
    """What of the agent's ran inside this process and what did not, for the verdict's findings."""
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        loader = getattr(getattr(module, "__spec__", None), "loader", None)
        if isinstance(file, str) and origin.agents(file) and not isinstance(loader, Empty):
            origin.said.add(("ran", file))
    _say(folder, origin)


def _say(folder: str, origin: Origin) -> None:
    if origin.said:
        try:
            with open(f"{folder}/seen/{os.getpid()}", "w", encoding="utf-8", errors="surrogateescape") as out:
                out.write("\n".join(f"{what} {path}" for what, path in sorted(origin.said)[:100]))
        except OSError:
            pass
