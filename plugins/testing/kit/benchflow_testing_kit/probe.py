"""A program for a child process: imports a plugin, calls its hook twice, and reports what that did."""

from __future__ import annotations

from typing import Final

__all__ = ["PROBE"]

PROBE: Final = r"""
import sys

module_name, hook = sys.argv[1:]
import importlib, json
import benchflow_core.hookspecs, benchflow_core.contracts, benchflow_core.errors
import pluggy
before = set(sys.modules)
effects = []
WRITES = {"os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.link", "os.symlink", "os.chmod", "os.putenv",
          "os.unsetenv", "os.system", "os.exec", "os.posix_spawn", "os.fork", "subprocess.Popen", "socket.connect",
          "socket.bind", "socket.getaddrinfo"}
watching = True

def watch(event, arguments):
    if not watching:
        return
    if event == "open":
        path, mode, flags = arguments
        written = set(mode or "") & set("wax+") if mode is not None else (flags or 0) & 3
        if written and not str(path).partition(".pyc")[1]:
            effects.append(f"open {path} for writing")
    elif event in WRITES and "__pycache__" not in repr(arguments):
        effects.append(f"{event} {arguments!r}"[:200])

sys.addaudithook(watch)
sys.dont_write_bytecode = True
module = importlib.import_module(module_name)
first, second = getattr(module, hook)(), getattr(module, hook)()
watching = False

own = module_name.partition(".")[0]
light = {own, "benchflow_core", "pluggy"} | set(sys.stdlib_module_names)
new = [name.partition(".")[0] for name in set(sys.modules) - before]


def of_the_family(name):
    # A few modules of a library made for this contract, such as one that plugins of one author share.
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        required = distribution(name.replace("_", "-")).requires or ()
    except PackageNotFoundError:
        return False
    return new.count(name) <= 4 and any(line.startswith("benchflow-core") for line in required)


heavy = sorted(name for name in set(new) - light if not of_the_family(name))


def plain(value):
    code = getattr(value, "__code__", None)
    if code is not None:
        return (code.co_filename, code.co_firstlineno)
    if isinstance(value, functools.partial):
        return (plain(value.func), plain(value.args), plain(value.keywords))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [plain(getattr(value, field.name)) for field in dataclasses.fields(value)]
    if isinstance(value, (tuple, list)):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return value


import dataclasses, functools
differences = [
    field.name for field in dataclasses.fields(first)
    if plain(getattr(first, field.name)) != plain(getattr(second, field.name))
] if dataclasses.is_dataclass(first) and type(first) is type(second) else ["type"]
print(json.dumps({"heavy": heavy, "effects": effects, "differences": differences}))
"""
