"""The agent: a program that runs in the box. One JSON-RPC message per line, as the Agent Client Protocol has it.

It imports nothing but the standard library, because nothing else can be counted on in the box.
"""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
import uuid
from typing import Any

PROTOCOL_VERSION = 1


class Agent:
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.sessions: dict[str, str] = {}
        self.cancelled: dict[str, threading.Event] = {}
        self.turns: queue.Queue[dict[str, Any]] = queue.Queue()

    def send(self, message: dict[str, Any]) -> None:
        line = json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False)
        with self.lock:
            sys.stdout.write(line + "\n")
            sys.stdout.flush()

    def update(self, session: str, name: str, data: dict[str, Any]) -> None:
        params = {"sessionId": session, "update": {"sessionUpdate": name, **data}}
        self.send({"method": "session/update", "params": params})

    def say(self, session: str, text: str) -> None:
        self.update(session, "agent_message_chunk", {"content": {"type": "text", "text": text}})

    def initialize(self, params: dict[str, Any]) -> dict[str, Any]:
        return {
            "protocolVersion": PROTOCOL_VERSION,
            "agentInfo": {"name": "{{name}}", "version": "0.1.0"},
            "agentCapabilities": {"loadSession": False, "promptCapabilities": {}},
            "authMethods": [],
        }

    def new_session(self, params: dict[str, Any]) -> dict[str, Any]:
        session = uuid.uuid4().hex
        self.sessions[session] = params.get("cwd") or os.getcwd()
        self.cancelled[session] = threading.Event()
        return {"sessionId": session}

    def prompt(self, params: dict[str, Any]) -> dict[str, Any]:
        session = params["sessionId"]
        cancelled = self.cancelled[session]
        text = "".join(block.get("text", "") for block in params["prompt"] if block.get("type") == "text").strip()
        if not text.startswith("run:"):
            self.say(session, "Hello. Tell me `run: COMMAND` and I run it.")
            return {"stopReason": "end_turn"}
        stopped = self.run(session, text[4:].strip(), cancelled)
        cancelled.clear()
        return {"stopReason": "cancelled" if stopped else "end_turn"}

    def run(self, session: str, command: str, cancelled: threading.Event) -> bool:
        call = uuid.uuid4().hex
        about = {"toolCallId": call, "title": command, "kind": "execute", "rawInput": {"command": command}}
        self.update(session, "tool_call", {**about, "status": "in_progress"})
        process = subprocess.Popen(
            ["sh", "-c", command],
            cwd=self.sessions[session],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        threading.Thread(target=self.kill_when, args=(cancelled, process), daemon=True).start()
        output = process.communicate()[0].decode("utf-8", "replace")[-65536:]
        status = "completed" if process.returncode == 0 else "failed"
        content = [{"type": "content", "content": {"type": "text", "text": output}}]
        result = {"exit_code": process.returncode, "output": output}
        ended = {"toolCallId": call, "status": status, "content": content, "rawOutput": result}
        self.update(session, "tool_call_update", ended)
        self.say(session, f"The command ended with exit code {process.returncode}.")
        return cancelled.is_set()

    def kill_when(self, cancelled: threading.Event, process: subprocess.Popen[bytes]) -> None:
        while process.poll() is None:
            if cancelled.wait(0.1):
                os.killpg(process.pid, 9)
                return

    def answer(self, message: dict[str, Any]) -> None:
        methods = {"initialize": self.initialize, "session/new": self.new_session, "session/prompt": self.prompt}
        identity = message["id"]
        method = methods.get(message["method"])
        if method is None:
            self.send({"id": identity, "error": {"code": -32601, "message": f"no method {message['method']}"}})
            return
        try:
            self.send({"id": identity, "result": method(message.get("params") or {})})
        except (AttributeError, LookupError, OSError, TypeError, ValueError) as error:
            self.send({"id": identity, "error": {"code": -32603, "message": f"{type(error).__name__}: {error}"}})

    def take_turns(self) -> None:
        while True:
            self.answer(self.turns.get())

    def serve(self) -> None:
        threading.Thread(target=self.take_turns, daemon=True).start()
        for line in sys.stdin:
            message = json.loads(line)
            if message.get("method") == "session/cancel":
                event = self.cancelled.get(message["params"]["sessionId"])
                if event is not None:
                    event.set()
            elif "method" in message and "id" in message:
                self.turns.put(message)


if __name__ == "__main__":
    Agent().serve()
