"""An ACP agent on standard input and output around Harvey LAB's own loop. Runs in the box.

The loop, its tools, its system prompt, its skills and its model adapters are those of the installed `lab_core`. Two
things are ours: the box itself is the sandbox, where the original starts a container; what happens is told over ACP.
A prompt is one run, as in the original: the next one starts a new conversation on the same files.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

# Standard output belongs to the protocol; the harness prints its progress.
PROTOCOL = os.fdopen(os.dup(1), "w", buffering=1)
os.dup2(2, 1)

from lab_core.harness import run as lab  # noqa: E402
from lab_core.harness.agent_loop import run_agent  # noqa: E402
from lab_core.harness.tools import ToolExecutor, get_all_tool_definitions  # noqa: E402
from lab_core.sandbox.sandbox import DOCUMENTS_PATH, OUTPUT_PATH, WORKSPACE_PATH, ExecResult, Sandbox  # noqa: E402

VERSION, SETTINGS = sys.argv[1], json.loads(os.environ["BENCHFLOW_HARVEY"])
PRIVATE = ("BENCHFLOW_HARVEY", "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY")
CHANGING = ("bash", "write", "edit")
KINDS = {"bash": "execute", "read": "read", "write": "edit", "edit": "edit", "glob": "search", "grep": "search"}


class TurnCancelled(BaseException):
    """Not an `Exception`: the harness turns those into tool results."""


class HarnessBox(Sandbox):
    """The harness's sandbox, which is here already."""

    def __init__(self, cwd: str) -> None:
        output = os.path.normpath(f"{cwd}/{SETTINGS['output']}")
        super().__init__(documents_dir=f"{cwd}/documents", output_dir=output, workspace_dir=cwd)
        self.running: subprocess.Popen[str] | None = None

    def start(self) -> None:
        for folder in (self.documents_dir, self.output_dir):
            folder.mkdir(parents=True, exist_ok=True)
        if not os.path.lexists(WORKSPACE_PATH):
            # The tools speak of this path, whatever the task's own is; without the right to make it they still work.
            with contextlib.suppress(OSError):
                Path(WORKSPACE_PATH).symlink_to(self.workspace_dir)

    def stop(self) -> None:
        pass

    def exec(
        self,
        command: str,
        *,
        cwd: str = WORKSPACE_PATH,
        timeout: float | None = None,
        env: dict[str, str] | None = None,
    ) -> ExecResult:
        limit = self.default_timeout if timeout is None else timeout
        shown = {"DOCUMENTS_DIR": DOCUMENTS_PATH, "OUTPUT_DIR": OUTPUT_PATH, "WORKSPACE_DIR": WORKSPACE_PATH}
        if os.path.realpath(WORKSPACE_PATH) != str(self.workspace_dir):
            shown = {name: str(self._to_host(path)) for name, path in shown.items()}
        kept = {name: value for name, value in os.environ.items() if name not in PRIVATE}
        kept["PATH"] = f"{kept.get('PATH', '')}:{Path(__file__).resolve().parent}/tools"
        process = self.running = subprocess.Popen(
            ["bash", "-lc", command],
            cwd=self._to_host(cwd),
            env={**kept, **shown, **self.extra_env, **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        try:
            out, err = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            self.interrupt()
            out, err = process.communicate()
            return ExecResult(out, err, None, timed_out=True)
        finally:
            self.running = None
        return ExecResult(out, err, process.returncode)

    def interrupt(self) -> None:
        process = self.running
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


class HarnessSession:
    def __init__(self, agent: HarnessAgent, cwd: str) -> None:
        self.agent = agent
        self.id = str(uuid.uuid4())
        self.box = HarnessBox(cwd)
        self.box.start()
        self.turn: HarnessTurn | None = None

    def prompt(self, text: str, answer: Callable[..., None]) -> None:
        turn = self.turn = HarnessTurn(self, answer)
        threading.Thread(target=turn.run, args=(text,), daemon=True).start()

    def update(self, what: str, /, **values: Any) -> None:
        self.agent.send(
            method="session/update", params={"sessionId": self.id, "update": {"sessionUpdate": what, **values}}
        )


class HarnessTurn:
    """One run of the harness, told as it goes. A cancelled one is answered at once and ends at its next step."""

    def __init__(self, session: HarnessSession, answer: Callable[..., None]) -> None:
        self.session, self.answer, self.cancelled = session, answer, False

    def run(self, text: str) -> None:
        try:
            result = self.work(text)
        except TurnCancelled:
            return
        except Exception as error:
            self.answer(error={"code": -32603, "message": f"{type(error).__name__}: {error}"[:2000]})
            return
        reasons = {"max_turns_exceeded": "max_turn_requests", "context_overflow": "max_tokens"}
        usage = {"inputTokens": result["input_tokens"], "outputTokens": result["output_tokens"]}
        reason = reasons.get(result["finish_reason"], "end_turn")
        self.answer(result={"stopReason": reason, "usage": usage, "_meta": {"finish": result["finish_reason"]}})

    def work(self, text: str) -> dict[str, Any]:
        adapter = lab.create_adapter(SETTINGS["model"], reasoning_effort=SETTINGS["effort"])
        ask = adapter.chat

        def chat(messages: Any, tools: Any) -> Any:
            self.check()
            response = ask(messages, tools)
            self.check()
            if response.text:
                self.session.update("agent_message_chunk", content={"type": "text", "text": response.text})
            return response

        adapter.chat = chat
        executor = ToolExecutor(sandbox=self.session.box, shell_timeout=SETTINGS["shell_timeout"], enable_finish=True)
        do = executor.execute
        executor.execute = lambda name, arguments: self.call(do, name, arguments)
        prompt = lab.build_system_preamble(True) + lab.load_skills(lab.DEFAULT_SKILLS)
        lab.setup_skill_scripts(lab.DEFAULT_SKILLS, self.session.box.workspace_dir)
        tools = get_all_tool_definitions(enable_finish=True)
        result: dict[str, Any] = run_agent(
            adapter, prompt, text, executor, tools=tools, max_turns=SETTINGS["max_turns"]
        )
        return result

    def check(self) -> None:
        if self.cancelled:
            raise TurnCancelled

    def call(self, do: Callable[[str, Any], str], name: str, arguments: Any) -> str:
        self.check()
        given = (
            json.loads(arguments) if isinstance(arguments, str) and arguments.lstrip().startswith("{") else arguments
        )
        about: dict[str, Any] = {
            "toolCallId": f"harvey-{uuid.uuid4().hex[:12]}",
            "title": name,
            "kind": KINDS.get(name, "other"),
        }
        about["rawInput"] = given if isinstance(given, dict) else {"arguments": given}
        self.session.update("tool_call", status="in_progress", **about)
        if name in CHANGING and not self.allowed(about):
            result, status = "Error: the user refused this call.", "failed"
        else:
            result = do(name, arguments)
            status = "failed" if result.startswith(("Error", "SecurityError")) else "completed"
        self.check()
        content = [{"type": "content", "content": {"type": "text", "text": result}}]
        self.session.update("tool_call_update", toolCallId=about["toolCallId"], status=status, content=content)
        return result

    def allowed(self, about: dict[str, Any]) -> bool:
        if not SETTINGS["ask"]:
            return True
        options = [
            {"optionId": "yes", "name": "Allow", "kind": "allow_once"},
            {"optionId": "no", "name": "Reject", "kind": "reject_once"},
        ]
        params = {"sessionId": self.session.id, "toolCall": about, "options": options}
        outcome = self.session.agent.ask("session/request_permission", params).get("outcome", {})
        return bool(outcome.get("optionId") == "yes")

    def cancel(self) -> None:
        self.cancelled = True
        self.session.box.interrupt()
        self.answer(result={"stopReason": "cancelled"})


class HarnessAgent:
    def __init__(self) -> None:
        self.sessions: dict[str, HarnessSession] = {}
        self.waiting: dict[Any, tuple[threading.Event, list[dict[str, Any]]]] = {}
        self.lock = threading.Lock()

    def send(self, **message: Any) -> None:
        with self.lock:
            PROTOCOL.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        number, event = f"harvey-{uuid.uuid4().hex[:8]}", threading.Event()
        found: list[dict[str, Any]] = []
        self.waiting[number] = (event, found)
        self.send(id=number, method=method, params=params)
        event.wait()
        return found[0]

    def answering(self, number: Any) -> Callable[..., None]:
        """Return a function that answers a request the first time it is called, and does nothing after that."""
        done = threading.Lock()

        def answer(**outcome: Any) -> None:
            if done.acquire(blocking=False):
                self.send(id=number, **outcome)

        return answer

    def handle(self, message: dict[str, Any]) -> None:
        number, method, params = message.get("id"), message.get("method"), message.get("params") or {}
        if method is None and number in self.waiting:
            event, found = self.waiting.pop(number)
            found.append(message.get("result") or {})
            event.set()
        elif method == "initialize":
            info = {"name": "harvey-lab-harness", "version": VERSION}
            self.send(id=number, result={"protocolVersion": 1, "agentInfo": info, "agentCapabilities": {}})
        elif method == "session/new":
            session = HarnessSession(self, params["cwd"])
            self.sessions[session.id] = session
            self.send(id=number, result={"sessionId": session.id})
        elif method == "session/prompt":
            text = "\n".join(block.get("text", "") for block in params["prompt"])
            self.sessions[params["sessionId"]].prompt(text, self.answering(number))
        elif method == "session/cancel":
            turn = self.sessions[params["sessionId"]].turn
            if turn is not None:
                turn.cancel()
        elif number is not None:
            self.send(id=number, error={"code": -32601, "message": f"Method not found: {method}"})


if __name__ == "__main__":
    agent = HarnessAgent()
    for line in sys.stdin:
        if line.strip():
            agent.handle(json.loads(line))
    os._exit(0)  # a run that was given up may still wait for its model
