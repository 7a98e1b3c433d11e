"""Abstract tools: a script says `write`, `bash`, `call` …, and the agent's own tool for it is called."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping
from typing import Any

from benchflow_testing.neutral import ModelToolCall, OfferedTool
from benchflow_testing.schema import fill

__all__ = ["NoSuchTool", "resolve"]

_WRITE = (
    "write",
    "write_file",
    "writefile",
    "create_file",
    "file_editor",
    "str_replace_editor",
    "str_replace_based_edit_tool",
    "apply_patch",
)
_BASH = (
    "bash",
    "run_shell_command",
    "shell_command",
    "exec_command",
    "shell",
    "terminal",
    "execute_bash",
    "execute_command",
    "exec",
    "local_shell",
    "run_command",
)
_READ = ("read", "read_file", "readfile", "view", "cat", "file_editor", "str_replace_editor")
_SKILL = ("skill", "activate_skill", "use_skill", "load_skill", "invoke_skill")
_PATHS = ("file_path", "filePath", "path", "absolute_path", "filename", "target_file")
_CONTENTS = ("content", "contents", "text")
_COMMANDS = ("command", "cmd", "script")
_WORDS = ("write", "bash", "read", "call", "skill")


class NoSuchTool(Exception):
    """The script asks for a tool the agent does not offer."""


def resolve(wanted: Mapping[str, Any], tools: Mapping[str, OfferedTool]) -> ModelToolCall:
    """A script's tool as a call: `{"do": "write", …}` by what is offered, `{"name": …, "args": …}` as it stands."""
    if "name" in wanted:
        tool = tools.get(wanted["name"])
        return ModelToolCall(wanted["name"], wanted.get("args", {}), tool.namespace if tool else "")
    do = wanted.get("do")
    if do == "write":
        return _write(str(wanted["path"]), str(wanted["content"]), tools)
    if do == "bash":
        return _bash(str(wanted["command"]), tools)
    if do == "read":
        return _read(str(wanted["path"]), tools)
    if do == "call":
        return _call(str(wanted["tool"]), wanted.get("args", {}), tools)
    if do == "skill":
        return _skill(str(wanted["skill"]), str(wanted["path"]), tools)
    raise NoSuchTool(f"a tool is {{'do': {' | '.join(map(repr, _WORDS))}}} or {{'name': …}}, not {wanted!r}")


def _write(path: str, content: str, tools: Mapping[str, OfferedTool]) -> ModelToolCall:
    tool = _find(_WRITE, tools)
    if tool is None:
        return _bash(f"printf %s {shlex.quote(content)} > {shlex.quote(path)}", tools)
    fields = _fields(tool)
    if tool.name.lower() == "apply_patch":
        patch = f"*** Begin Patch\n*** Add File: {path}\n{_added(content)}*** End Patch"
        return ModelToolCall(
            tool.name, patch if tool.freeform else {next(iter(fields), "input"): patch}, tool.namespace
        )
    if "file_text" in fields:
        arguments = {"command": "create", "path": path, "file_text": content}
    else:
        arguments = {_first(_PATHS, fields, "path"): path, _first(_CONTENTS, fields, "content"): content}
    return ModelToolCall(tool.name, fill(tool.schema, arguments, "write a file"), tool.namespace)


def _bash(command: str, tools: Mapping[str, OfferedTool]) -> ModelToolCall:
    tool = _need("shell", _BASH, tools)
    if tool.javascript:
        program = f"text(await tools.exec_command({json.dumps({'cmd': command})}))"
        return ModelToolCall(tool.name, program, tool.namespace)
    if tool.freeform:
        return ModelToolCall(tool.name, command, tool.namespace)
    name = _first(_COMMANDS, _fields(tool), "command")
    as_list = (_fields(tool).get(name) or {}).get("type") == "array"
    arguments: dict[str, Any] = {name: ["bash", "-lc", command] if as_list else command}
    return ModelToolCall(tool.name, fill(tool.schema, arguments, "run a command"), tool.namespace)


def _read(path: str, tools: Mapping[str, OfferedTool]) -> ModelToolCall:
    tool = _need("reading", _READ, tools)
    arguments: dict[str, Any] = {_first(_PATHS, _fields(tool), "path"): path}
    if "file_text" in _fields(tool):
        arguments["command"] = "view"
    return ModelToolCall(tool.name, fill(tool.schema, arguments, "read a file"), tool.namespace)


def _call(name: str, arguments: Mapping[str, Any], tools: Mapping[str, OfferedTool]) -> ModelToolCall:
    """A tool of an MCP server: every agent puts the server's name before it in its own way."""
    tool = next((tool for offered, tool in tools.items() if offered == name or offered.endswith(f"_{name}")), None)
    if tool is None:
        raise NoSuchTool(f"no tool {name!r} among: {', '.join(tools) or 'none'}")
    return ModelToolCall(tool.name, arguments, tool.namespace)


def _skill(name: str, path: str, tools: Mapping[str, OfferedTool]) -> ModelToolCall:
    """By the agent's tool for skills; one that has none reads the skill's file."""
    tool = _find(_SKILL, tools)
    if tool is None:
        return _read(path, tools) if _find(_READ, tools) else _bash(f"cat {shlex.quote(path)}", tools)
    return ModelToolCall(tool.name, {_first(("skill", "name"), _fields(tool), "name"): name}, tool.namespace)


def _find(names: Iterable[str], tools: Mapping[str, OfferedTool]) -> OfferedTool | None:
    known = {name.lower(): tool for name, tool in tools.items()}
    return next((known[name] for name in names if name in known), None)


def _need(what: str, names: Iterable[str], tools: Mapping[str, OfferedTool]) -> OfferedTool:
    tool = _find(names, tools)
    if tool is None:
        raise NoSuchTool(f"no {what} tool among: {', '.join(tools) or 'none'}")
    return tool


def _fields(tool: OfferedTool) -> Mapping[str, Any]:
    return tool.schema.get("properties") or {}


def _first(names: Iterable[str], fields: Mapping[str, Any], default: str) -> str:
    return next((name for name in names if name in fields), default)


def _added(content: str) -> str:
    return "".join(f"+{line}\n" for line in content.splitlines())
