"""An ACP agent that plays a script. Standard library only, Python 3.8 or newer: this folder runs inside the box.

Usage: python agent.py SCRIPT.json, with the script as `benchflow_agent_scripted.script` has checked and normalised it.
"""

from __future__ import annotations

import json
import os
import re
import sys
import threading

from turn import PlayedTurn, Stop

TYPE_CHECKING = False  # importing typing would cost a fifth of the start-up time
if TYPE_CHECKING:
    from typing import Any

    Json = dict[str, Any]


class AcpOutput:
    """JSON lines on standard output; answers to our requests come back through `answer`."""

    def __init__(self) -> None:
        self.out = sys.stdout.buffer
        self.lock = threading.Lock()
        self.waiting: dict[int, Json] = {}
        self.next_id = 1

    def raw(self, data: bytes) -> None:
        with self.lock:
            self.out.write(data)
            self.out.flush()

    def send(self, message: Any) -> None:
        self.raw(json.dumps(message, separators=(",", ":")).encode() + b"\n")

    def reply(self, request_id: Any, result: Any = None, error: Json | None = None) -> None:
        body = {"error": error} if error else {"result": result}
        self.send(dict({"jsonrpc": "2.0", "id": request_id}, **body))

    def notify(self, method: str, params: Json) -> None:
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def request(self, method: str, params: Json) -> Json:
        """Waits for the answer: the whole message."""
        request_id, self.next_id = self.next_id, self.next_id + 1
        slot = self.waiting[request_id] = {"done": threading.Event()}
        self.send({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params})
        slot["done"].wait()
        message: Json = slot["message"]
        return message

    def answer(self, message: Json) -> None:
        slot = self.waiting.pop(message.get("id", -1), None)
        if slot is not None:
            slot["message"] = message
            slot["done"].set()

    def give_up(self) -> None:
        """A cancelled turn waits for no answer."""
        for request_id in list(self.waiting):
            self.answer({"id": request_id, "error": {"code": -32800, "message": "cancelled"}})


class ScriptedAgent:
    """The protocol around the turns."""

    def __init__(self, script: Json) -> None:
        self.script = script
        self.wire = AcpOutput()
        self.role = script.get("role", "agent")
        self.settings = {"model": script.get("model") or "scripted", "effort": "medium", "mode": "default"}
        self.session_id, self.cwd = "", os.getcwd()
        self.mcp_servers: list[Json] = []
        self.turn: PlayedTurn | None = None
        self.played = 0
        self.authenticated = "auth" not in script

    def update(self, update: Json) -> None:
        self.wire.notify("session/update", {"sessionId": self.session_id, "update": update})

    def serve(self) -> None:
        for line in sys.stdin.buffer:
            try:
                message = json.loads(line)
            except ValueError:
                continue
            if not isinstance(message, dict):
                continue
            if "method" not in message:
                self.wire.answer(message)
            elif message["method"] == "session/cancel":
                if self.turn is not None:
                    self.turn.cancel()
            elif "id" in message:
                self.on_request(message["id"], message["method"], message.get("params") or {})

    def on_request(self, request_id: Any, method: str, params: Json) -> None:
        handler = getattr(self, "on_" + method.replace("/", "_"), None)
        if handler is None:
            self.wire.reply(request_id, error={"code": -32601, "message": "Method not found: " + method})
            return
        try:
            result = handler(request_id, params)
        except Stop as stop:
            self.wire.reply(request_id, error=stop.error)
        else:
            if result is not None:
                self.wire.reply(request_id, result)

    def on_initialize(self, _: Any, params: Json) -> Json:
        methods = [] if self.authenticated else [{"id": self.script["auth"], "name": self.script["auth"]}]
        return {
            "protocolVersion": 1,
            "agentInfo": {"name": "benchflow-scripted", "title": "Scripted agent", "version": self.script["version"]},
            "agentCapabilities": {"loadSession": True, "mcpCapabilities": {"http": True, "sse": True}},
            "authMethods": methods,
        }

    def on_authenticate(self, _: Any, params: Json) -> Json:
        if params.get("methodId") != self.script.get("auth"):
            raise Stop(error={"code": -32602, "message": "unknown method"})
        self.authenticated = True
        return {}

    def on_session_new(self, _: Any, params: Json) -> Json:
        if not self.authenticated:
            raise Stop(error={"code": -32000, "message": "Authentication required"})
        self.session_id = f"scripted-{os.getpid()}"
        self.mcp_servers = params.get("mcpServers") or []
        self.cwd = params.get("cwd") or self.cwd
        return dict({"sessionId": self.session_id}, **self.state())

    def on_session_load(self, _: Any, params: Json) -> Json:
        self.session_id, self.cwd = params["sessionId"], params.get("cwd") or self.cwd
        self.update({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "(earlier)"}})
        return self.state()

    def state(self) -> Json:
        modes = [{"id": name, "name": name} for name in ("default", "auto")]
        return {
            "modes": {"currentModeId": self.settings["mode"], "availableModes": modes},
            "configOptions": [self.option("model", "model"), self.option("effort", "thought_level", "low", "high")],
        }

    def option(self, name: str, category: str, *others: str) -> Json:
        values = [self.settings[name], *(o for o in others if o != self.settings[name])]
        options = [{"value": v, "name": v} for v in values]
        found = {"type": "select", "id": name, "name": name.capitalize(), "category": category}
        return dict(found, currentValue=self.settings[name], options=options)

    def on_session_set_mode(self, _: Any, params: Json) -> Json:
        self.settings["mode"] = str(params.get("modeId"))
        self.update({"sessionUpdate": "current_mode_update", "currentModeId": self.settings["mode"]})
        return {}

    def on_session_set_model(self, _: Any, params: Json) -> Json:
        self.settings["model"] = str(params.get("modelId"))
        return {}

    def on_session_set_config_option(self, _: Any, params: Json) -> Json:
        if params.get("configId") not in ("model", "effort"):
            raise Stop(error={"code": -32602, "message": "unknown option"})
        self.settings[params["configId"]] = str(params.get("value"))
        return {"configOptions": self.state()["configOptions"]}

    def on_session_prompt(self, request_id: Any, params: Json) -> None:
        """Answered by the turn itself, at its end."""
        if self.turn is not None:
            raise Stop(error={"code": -32600, "message": "a turn is running"})
        text = "".join(block.get("text", "") for block in params.get("prompt", []))
        self.turn = PlayedTurn(self, request_id, text)
        threading.Thread(target=self.turn.play, args=(self.steps_for(text),), daemon=True).start()

    def steps_for(self, text: str) -> list[Json]:
        """A turn whose pattern matches, else the next one without a pattern, else `otherwise`."""
        steps: list[Json] = self.script["otherwise"]
        turns = self.script["turns"]
        for turn in turns:
            if turn["match"] is not None and re.search(turn["match"], text):
                steps = turn["steps"]
                return steps
        ordered = [turn for turn in turns if turn["match"] is None]
        self.played += 1
        if self.played <= len(ordered):
            steps = ordered[self.played - 1]["steps"]
        return steps


def main() -> None:
    with open(sys.argv[1], encoding="utf-8") as file:
        agent = ScriptedAgent(json.load(file))
    agent.serve()
    if agent.turn is not None:
        agent.turn.kill_child()
    os._exit(0)


if __name__ == "__main__":
    main()
