"""One prompt being played: a method `do_<step>` for every step a script may hold."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import sys
import threading
import time

OUTPUT_LIMIT = 256 * 1024
CHOICES = (("yes", "Allow", "allow_once"), ("no", "Reject", "reject_once"))
TEMPLATE = re.compile(r"\{\{(\w+)(\|sh)?\}\}")
TOKENS = (
    ("input", "inputTokens"),
    ("output", "outputTokens"),
    ("cache_read", "cachedReadTokens"),
    ("cache_write", "cachedWriteTokens"),
)
TYPE_CHECKING = False  # importing typing would cost a fifth of the start-up time
if TYPE_CHECKING:
    from typing import Any

    Json = dict[str, Any]


class Stop(Exception):
    """Ends the turn with this answer."""

    def __init__(self, result: Any = None, error: Json | None = None) -> None:
        super().__init__()
        self.result = result
        self.error = error


class PlayedTurn:
    """Runs in a thread of its own; `cancel` is called from the reader's."""

    def __init__(self, agent: Any, request_id: Any, text: str) -> None:
        self.agent, self.wire, self.request_id = agent, agent.wire, request_id
        self.names = {"prompt": text, "cwd": agent.cwd, "role": agent.role, "last": ""}
        self.cancelled = threading.Event()
        self.ignore_cancel = False
        self.child: Any = None
        self.usage: Json | None = None
        self.calls = 0

    def cancel(self) -> None:
        if not self.ignore_cancel:
            self.cancelled.set()
            self.kill_child()
            self.wire.give_up()

    def kill_child(self) -> None:
        if self.child is not None and self.child.poll() is None:
            try:
                os.killpg(self.child.pid, signal.SIGKILL)
            except OSError:
                pass

    def play(self, steps: list[Json]) -> None:
        try:
            for step in steps:
                getattr(self, "do_" + step["do"])(self.filled(step))
                self.check_cancelled()
            raise Stop(self.answer("end_turn"))
        except Stop as stop:
            self.agent.turn = None
            self.wire.reply(self.request_id, stop.result, stop.error)
        except Exception as error:
            self.agent.turn = None
            self.wire.reply(self.request_id, error={"code": -32603, "message": f"{type(error).__name__}: {error}"})
            raise

    def answer(self, reason: str | None) -> Json:
        found: Json = {} if reason is None else {"stopReason": reason}
        if self.usage is not None:
            found["usage"] = self.usage
        return found

    def check_cancelled(self) -> None:
        if self.cancelled.is_set():
            raise Stop(self.answer("cancelled"))

    def pause(self, seconds: float) -> None:
        self.cancelled.wait(seconds)
        self.check_cancelled()

    def filled(self, value: Any) -> Any:
        """With `{{names}}` replaced, all the way down."""
        if isinstance(value, str):
            return TEMPLATE.sub(self.name, value)
        if isinstance(value, list):
            return [self.filled(item) for item in value]
        if isinstance(value, dict):
            return {key: self.filled(item) for key, item in value.items()}
        return value

    def name(self, match: Any) -> str:
        value = dict(self.names, **self.agent.settings).get(match.group(1))
        if value is None:
            return str(match.group(0))
        return shlex.quote(value) if match.group(2) else value

    def update(self, session_update: str, **data: Any) -> None:
        self.agent.update(dict({"sessionUpdate": session_update}, **data))

    # --- what the agent says -------------------------------------------------------------------------------

    def do_say(self, step: Json, kind: str = "agent_message_chunk") -> None:
        text, size = step["say"], step.get("chunk") or len(step["say"]) or 1
        for start in range(0, max(len(text), 1), size):
            self.update(kind, content={"type": "text", "text": text[start : start + size]})
            if step.get("delay"):
                self.pause(step["delay"])

    def do_think(self, step: Json) -> None:
        self.do_say(dict(step, say=step["think"]), "agent_thought_chunk")

    def do_plan(self, step: Json) -> None:
        default = {"priority": "medium", "status": "pending"}
        entries = [{"content": e} if isinstance(e, str) else e for e in step["plan"]]
        self.update("plan", entries=[dict(default, **e) for e in entries])

    def do_usage(self, step: Json) -> None:
        given = step["usage"]
        counts = {theirs: given[ours] for ours, theirs in TOKENS if ours in given}
        if counts:
            self.usage = dict({"inputTokens": 0, "outputTokens": 0, "totalTokens": sum(counts.values())}, **counts)
        if "cost" in given or "context" in given:
            cost = {"cost": {"amount": given["cost"], "currency": "USD"}} if "cost" in given else {}
            self.update("usage_update", used=given.get("context", 0), size=200000, **cost)

    def do_update(self, step: Json) -> None:
        self.agent.update(step["update"])

    def do_flood(self, step: Json) -> None:
        flood = step["flood"] if isinstance(step["flood"], dict) else {"count": step["flood"]}
        content = {"type": "text", "text": flood.get("text", "tick ")}
        update = {"sessionUpdate": flood.get("kind", "agent_message_chunk"), "content": content}
        params = {"sessionId": self.agent.session_id, "update": update}
        line = json.dumps({"jsonrpc": "2.0", "method": "session/update", "params": params}).encode() + b"\n"
        for start in range(0, flood["count"], 100):
            self.check_cancelled()
            self.wire.raw(line * min(100, flood["count"] - start))

    # --- what the agent does -------------------------------------------------------------------------------

    def do_run(self, step: Json) -> None:
        import subprocess

        raw = {"command": step["run"], "cwd": self.path(step.get("cwd", "."))}
        call = self.begin(step, step["run"], "execute", raw)
        if call is None:
            return
        # Files instead of pipes: what the command leaves in the background must not keep us waiting.
        with scratch() as out, scratch() as err:
            self.child = self.popen(step["run"], step, subprocess.DEVNULL, out, err)
            timer = threading.Timer(step.get("timeout", 86400.0), self.kill_child)
            timer.daemon = True
            timer.start()
            if self.cancelled.is_set():
                self.kill_child()
            code = self.child.wait()
            timer.cancel()
            stdout, stderr = tail(out), tail(err)
        self.child = None
        self.end(call, code == 0, stdout + stderr, {"exit_code": code, "stdout": stdout, "stderr": stderr})

    def do_background(self, step: Json) -> None:
        import subprocess

        call = self.begin(step, step["background"], "execute", {"command": step["background"], "background": True})
        if call is not None:
            null = subprocess.DEVNULL
            child = self.popen(step["background"], step, null, null, null)
            self.end(call, True, str(child.pid), {"pid": child.pid})

    def popen(self, command: str, step: Json, stdin: Any, stdout: Any, stderr: Any) -> Any:
        import subprocess

        return subprocess.Popen(
            ["/bin/sh", "-c", command],
            cwd=self.path(step.get("cwd", ".")),
            env=dict(os.environ, **step.get("env", {})),
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            start_new_session=True,
        )

    def do_write(self, step: Json) -> None:
        path, content = self.path(step["write"]["path"]), step["write"]["content"]
        call = self.begin(step, "Write " + path, "edit", {"path": path, "content": content}, path)
        if call is None:
            return
        try:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            old = read_text(path) if os.path.exists(path) else None
            with open(path, "w", encoding="utf-8") as file:
                file.write(content)
        except OSError as error:
            self.end(call, False, str(error), {"error": str(error)})
        else:
            diff = {"type": "diff", "path": path, "oldText": old, "newText": content}
            self.end(call, True, "", {"bytes": len(content.encode())}, diff)

    def do_read(self, step: Json) -> None:
        path = self.path(step["read"])
        call = self.begin(step, "Read " + path, "read", {"path": path}, path)
        if call is None:
            return
        try:
            text = read_text(path)
        except OSError as error:
            self.end(call, False, str(error), {"error": str(error)})
        else:
            self.end(call, True, text, {"bytes": len(text.encode())})

    def do_tool(self, step: Json) -> None:
        from http.client import HTTPException

        from mcp_call import call_tool

        call = self.begin(step, step["tool"], "other", step.get("input", {}))
        if call is None:
            return
        try:
            good, text, result = call_tool(self.agent.mcp_servers, step)
        except (OSError, ValueError, HTTPException) as error:
            self.end(call, False, str(error), {"error": str(error)})
        else:
            self.end(call, good, text, result)

    def path(self, path: str) -> str:
        return os.path.normpath(os.path.join(self.names["cwd"], path))

    def begin(self, step: Json, title: str, kind: str, raw_input: Json, location: str | None = None) -> Json | None:
        """Announce a tool call and ask for it where the script says so. `None`: it was refused."""
        self.calls += 1
        call = {"toolCallId": step.get("id") or f"call-{self.request_id}-{self.calls}"}
        shown = dict(call, title=step.get("title", title), kind=step.get("kind", kind), rawInput=raw_input)
        if location:
            shown["locations"] = [{"path": location}]
        self.update("tool_call", status="pending", **shown)
        if step.get("permission") and not self.permitted(step["permission"], shown):
            self.end(call, False, "The user refused.", {"refused": True})
            return None
        self.update("tool_call_update", status="in_progress", **call)
        return call

    def end(self, call: Json, good: bool, text: str, raw_output: Json, *content: Json) -> None:
        self.names["last"] = text
        shown = [{"type": "content", "content": {"type": "text", "text": text}}] if text else []
        status = "completed" if good else "failed"
        self.update("tool_call_update", status=status, content=[*shown, *content], rawOutput=raw_output, **call)
        self.check_cancelled()

    def permitted(self, asked: Any, call: Json) -> bool:
        offered = [{"optionId": i, "name": n, "kind": k} for i, n, k in CHOICES]
        if isinstance(asked, dict) and "options" in asked:
            offered = asked["options"]
        params = {"sessionId": self.agent.session_id, "toolCall": dict(call, status="pending"), "options": offered}
        answer = self.wire.request("session/request_permission", params)
        outcome = (answer.get("result") or {}).get("outcome") or {}
        if outcome.get("outcome") != "selected":
            raise Stop(self.answer("cancelled"))
        kinds = {option["optionId"]: option["kind"] for option in offered}
        return str(kinds.get(outcome.get("optionId", ""), "")).startswith("allow")

    def do_call(self, step: Json) -> None:
        params = dict({"sessionId": self.agent.session_id}, **step["call"].get("params", {}))
        answer = self.wire.request(step["call"]["method"], params)
        self.names["last"] = json.dumps(answer["error"] if "error" in answer else answer.get("result"))

    def do_elicit(self, step: Json) -> None:
        schema = {"type": "object", "properties": step["elicit"].get("properties", {})}
        params = {"mode": "form", "message": step["elicit"]["message"], "requestedSchema": schema}
        self.do_call({"call": {"method": "elicitation/create", "params": params}})

    # --- how the agent fails -------------------------------------------------------------------------------

    def do_wait(self, step: Json) -> None:
        self.pause(step["wait"])

    def do_hang(self, step: Json) -> None:
        while True:
            if self.ignore_cancel:
                time.sleep(3600)
            self.pause(3600)

    def do_ignore_cancel(self, step: Json) -> None:
        self.ignore_cancel = step["ignore_cancel"]

    def do_stop(self, step: Json) -> None:
        raise Stop(self.answer(step["stop"]))

    def do_error(self, step: Json) -> None:
        raise Stop(error=step["error"])

    def do_crash(self, step: Json) -> None:
        if step["crash"] < 0:
            os.kill(os.getpid(), -step["crash"])
        os._exit(step["crash"])

    def do_stderr(self, step: Json) -> None:
        sys.stderr.write(step["stderr"] + "\n")
        sys.stderr.flush()

    def do_garbage(self, step: Json) -> None:
        import base64

        given = step["garbage"] if isinstance(step["garbage"], dict) else {"text": step["garbage"]}
        data = base64.b64decode(given["base64"]) if "base64" in given else given.get("text", "").encode()
        for _ in range(given.get("repeat", 1)):
            self.wire.raw(data)
        self.wire.raw(b"\n" if given.get("newline", True) else b"")

    def do_send(self, step: Json) -> None:
        self.wire.send(step["send"])

    def do_close_stdout(self, step: Json) -> None:
        os.close(self.wire.out.fileno())
        self.cancelled.wait()


def scratch() -> Any:
    """A file without a name. Importing tempfile would take longer than most commands."""
    path = os.path.join(os.environ.get("TMPDIR") or "/tmp", f".scripted-{os.getpid()}-{time.time_ns()}")
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    os.unlink(path)
    return os.fdopen(fd, "w+b")


def tail(file: Any) -> str:
    size = file.seek(0, os.SEEK_END)
    file.seek(max(size - OUTPUT_LIMIT, 0))
    return str(file.read().decode("utf-8", "replace"))


def read_text(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read(OUTPUT_LIMIT)
