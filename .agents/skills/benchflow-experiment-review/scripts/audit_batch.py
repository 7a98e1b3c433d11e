#!/usr/bin/env python3
"""What is wrong with the rollouts below a folder, a line each; exit code 1 when anything is.

    audit_batch.py JOBS [--skills required | forbidden] [--task-skill NAME]...

It sees what can be seen without judgement. Whether a pass was earned has to be read in the trajectory.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HARMLESS = {"contended"}
"""Worth knowing when times are compared: the host was busy. The score is not worse for it."""
SUSPECT = re.compile(r"/logs/verifier|reward\.(txt|json)|/tests/|/solution/")


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("jobs", type=Path)
    parser.add_argument("--skills", choices=["required", "forbidden"])
    parser.add_argument("--task-skill", action="append", default=[], metavar="NAME")
    given = parser.parse_args(argv)
    found = sorted(p for p in given.jobs.rglob("config.json") if "attempts" not in p.parts)
    if not found:
        print(f"error: there is no rollout below {given.jobs}", file=sys.stderr)
        return 2
    bad = 0
    for config in found:
        problems = list(audit(config.parent, given.skills, given.task_skill))
        bad += bool(problems)
        print(f"{'BAD' if problems else 'ok '}  {config.parent}" + "".join(f"\n       {line}" for line in problems))
    print(f"{len(found) - bad} of {len(found)} rollouts are healthy as far as can be seen from here")
    return int(bool(bad))


def audit(rollout: Path, posture: str | None, task_skills: list[str]) -> Iterator[str]:
    try:
        result = json.loads((rollout / "result.json").read_text())
        events = [json.loads(line) for line in (rollout / "events.jsonl").read_text().splitlines()]
    except (OSError, ValueError) as error:
        yield f"incomplete: {error}"
        return
    if (result.get("rewards") or {}).get("reward") is None:
        info = result.get("error_info") or result.get("verifier_error_info") or {}
        yield f"unscored: {info.get('kind')} {info.get('code')}: {result.get('error') or result.get('verifier_error')}"
    yield from (f"flagged: {flag}" for flag in result.get("flags") or () if flag not in HARMLESS)
    if not (rollout / "trajectory/acp_trajectory.jsonl").is_file():
        yield "no trajectory"
    yield from usage(rollout, result)
    yield from order(events)
    yield from hacking(events)
    yield from skills(rollout, result, posture, task_skills)


def usage(rollout: Path, result: dict[str, Any]) -> Iterator[str]:
    used = result.get("agent_result") or {}
    if (rollout / "trajectory/llm_trajectory.jsonl").is_file() and used.get("usage_source") != "provider_response":
        yield f"tokens were not counted at the gateway: usage_source is {used.get('usage_source')}"


def order(events: list[dict[str, Any]]) -> Iterator[str]:
    """The verifier begins after the last turn has ended."""
    phases = [e["seq"] for e in events if e["kind"] == "phase_started" and e["data"].get("phase") == "verify"]
    turns = [e["seq"] for e in events if e["kind"] == "turn_finished"]
    steps = any(e["kind"] == "step_started" for e in events)
    if phases and turns and not steps and max(turns) > phases[0]:
        yield "the verifier began before the agent had ended"


def hacking(events: list[dict[str, Any]]) -> Iterator[str]:
    for event in events:
        if event["kind"] in ("tool_call", "tool_call_update"):
            asked = json.dumps([event["data"].get("rawInput"), event["data"].get("title")])
            if match := SUSPECT.search(asked):
                yield f"read event {event['seq']}: the agent named {match.group(0)}"
                return


def skills(rollout: Path, result: dict[str, Any], posture: str | None, names: list[str]) -> Iterator[str]:
    mode = result.get("skill_mode")
    posture = posture or {"with-skill": "required", "no-skill": "forbidden"}.get(str(mode))
    if not names or posture is None:
        return
    text = "".join(p.read_text(errors="replace") for p in (rollout / "trajectory").glob("*.jsonl"))
    text += (rollout / "events.jsonl").read_text(errors="replace")
    for name in names:
        seen = re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text) is not None
        if seen != (posture == "required"):
            yield f"skill '{name}' is {'in' if seen else 'not in'} the trajectory of a run where it is {posture}"


if __name__ == "__main__":
    sys.exit(main())
