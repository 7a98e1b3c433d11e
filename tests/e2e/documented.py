"""What the model says to the prompts of the public documents: a command for the words of each prompt, in each use case.

A command depends on what came before it: whoever is to act on a message acts on the message's own words, and whoever
judges somebody's work looks for it. Where a document's promise is not kept, the task is not solved.
"""

from __future__ import annotations

import json
from typing import Any

TASK = "The file `/app/name.txt` holds a name"
"""From the instruction of the task."""
TRY = "echo Hello > /app/hello.txt"
GREET = "sed -e s/.*/Hello,\\ \\&\\!/ /app/name.txt > /app/hello.txt"
"""Gemini refuses commands with `$(…)`."""
TRIED = "grep -qx Hello /app/hello.txt"
GOAL, HINT, LGTM = "GOAL: a greeting", "HINT: the name is in name.txt", "LGTM"
FEEDBACK = "FEEDBACK: greet by name"
REVIEW = "REVIEW: greet by name"


def tell(to: str, content: str) -> str:
    """Write a message into the outbox."""
    return f"echo '{json.dumps({'to': to, 'content': content})}' > /app/.outbox/{to}.json"


def skill(path: str = "/app/generated-skill.md", task: str = "/instruction.md") -> str:
    """Write a skill. `task`: where whoever is to analyze the task finds it; beside the work only where a prompt says so."""
    return f"cat {task} && echo '{GREET}' > {path}"


_REVIEWED = f"{TRIED} && {tell('coder', FEEDBACK)}"
_HINTED = f"{TRIED} && cat /solution/solve.sh && {tell('assistant', HINT)}"
_ASSISTED = {
    "You are simulating a user": f"cat /app/instruction.md /solution/solve.sh && {tell('assistant', GOAL)}",
    GOAL: f"if cat /solution/solve.sh; then echo seen > /app/hello.txt; else {TRY}; fi",
    HINT: GREET,
}
_CALENDAR = """
curl -fsS 'http://localhost:9001/gmail/v1/users/me/messages?q=from:alice' | grep -o '"id": *"[^"]*"' | head -1 | cut -d'"' -f4 > /tmp/mail
xargs -I{} curl -fsS 'http://localhost:9001/gmail/v1/users/me/messages/{}' < /tmp/mail | grep -q 'Meeting next week' &&
curl -fsS http://localhost:9002/health &&
curl -fsS -H 'content-type: application/json' http://localhost:9003/calendar/v3/calendars/primary/events -d '{
  "summary": "Pier renovation kickoff", "location": "Lighthouse Room",
  "start": {"dateTime": "2026-03-11T14:30:00Z"}, "end": {"dateTime": "2026-03-11T15:15:00Z"},
  "attendees": [{"email": "alice@northpier.example"}]}'
"""
_SOLVED = {TASK: GREET}
_MULTI_TURN = {
    TASK: TRY,
    "Review your solution. Run": f"{TRIED} && touch /tmp/reviewed",
    "Final check:": f"test -e /tmp/reviewed && {GREET}",
}

SAID: dict[str, dict[str, str]] = {
    "interactive-user.yaml": {
        **_ASSISTED,
        "Read the assistant's work in /app/.": _HINTED,
        "Final check. Read /app/ and compare": f"grep -q '^Hello, .*!$' /app/hello.txt && {tell('assistant', LGTM)}",
    },
    "interactive-user.py": {**_ASSISTED, "Check the assistant's work against": _HINTED},
    "review-loop.yaml": {
        TASK: TRY,
        "You are an expert code reviewer.": f"cat /app/instruction.md && {_REVIEWED}",
        FEEDBACK: GREET,
    },
    "cross-model-review.yaml": {
        TASK: TRY,
        "You are reviewing code written by a different agent.": f"cat /app/instruction.md && {_REVIEWED}",
        FEEDBACK: GREET,
    },
    "cross-model-review.py": {TASK: TRY, "Review the coder's work": _REVIEWED, FEEDBACK: GREET},
    "coder-reviewer.py": {TASK: TRY, "Review /app/. Write feedback to": _REVIEWED, FEEDBACK: GREET},
    "scenes.py": {TASK: TRY, "Review the code. Write feedback to": _REVIEWED, FEEDBACK: GREET},
    "mcp-reviewer.py": {TASK: TRY, "Call the review_code MCP tool": GREET},
    "skill-generation.yaml": {
        TASK: "sh /app/generated-skill.md",
        "Read /app/instruction.md. Analyze the task requirements.": skill(task="/app/instruction.md"),
    },
    "skill-generation.py": {TASK: "sh /app/generated-skill.md", "Analyze the task and write a skill": skill()},
    "byos.py": {TASK: "sh /app/generated-skill.md", "Generate a skill document to": skill()},
    "trial-config.py": {TASK: "sh /app/skill.md", "Generate a skill for this task...": skill("/app/skill.md")},
    "multi-turn.yaml": _MULTI_TURN,
    "multi-turn.py": _MULTI_TURN,
    "from-yaml.py": _MULTI_TURN,
    "stateful-environment.yaml": {"Read the email from Alice": _CALENDAR},
    "stateful-environment.py": {"Read the email from Alice": _CALENDAR},
    "phases.py": {**_SOLVED, "custom prompt": GREET},
    "sdk.py": {**_SOLVED, "Review your solution. Check for errors": "grep -q '^Hello, .*!$' /app/hello.txt"},
    "calling-conventions.py": _SOLVED,
    "job-retry.py": _SOLVED,
    "run-by-name.py": _SOLVED,
    "runtime.py": _SOLVED,
}


def play(model: Any, document: str) -> None:
    """Make the local model say what this document's prompts ask for, and nothing else."""
    model.reset()
    model.answers.prompts.clear()
    for number, (words, command) in enumerate(SAID[document].items()):
        steps: list[Any] = [{"tools": [{"do": "bash", "command": command}]}, "Done."]
        if "review_code" in words:
            steps.insert(0, {"tools": [{"do": "call", "tool": "review_code", "args": {}}]})
        model.script(f"prompt-{number}", steps, prompt=words)
    if document == "mcp-reviewer.py":
        model.script("reviewer", [REVIEW], prompt="The workspace:\n")
