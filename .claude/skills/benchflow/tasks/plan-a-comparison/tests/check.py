"""Reads the two commands as `bench` would."""

import shlex
import sys
from pathlib import Path

SHORT = {"-t": "tasks", "--tasks-dir": "tasks", "--task": "tasks", "-a": "agent", "--agent": "agent", "-m": "model"}
SHORT |= {"--model": "model", "-e": "sandbox", "--sandbox": "sandbox", "--environment": "sandbox", "--env": "sandbox"}
SHORT |= {"--trials": "trials", "--job-name": "job", "--max-cost": "cost"}
IGNORED = {"-c", "--concurrency", "-o", "--jobs-dir", "--retries", "--max-retries"}


def options(words):
    found, rest = {}, []
    words = [part for word in words for part in (word.split("=", 1) if word.startswith("--") else [word])]
    while words:
        word = words.pop(0)
        if word in SHORT or word in IGNORED:
            value = words.pop(0)
            found.setdefault(SHORT.get(word, word), []).extend(
                value.split(",") if word in ("-m", "--model") else [value]
            )
        else:
            rest.append(word)
    return found, rest


text = Path("/app/compare.sh").read_text().replace("\\\n", " ")
commands = [shlex.split(line, comments=True) for line in text.splitlines()]
commands = [words for words in commands if words and words[0] in ("bench", "benchflow")]
if len(commands) != 2:
    sys.exit(f"expected two commands, found {len(commands)}")
run, compare = commands
given, rest = options(run[1:])
assert rest[:2] in (["eval", "create"], ["eval", "run"]) or rest[:1] in (["run"], ["job"]), rest
assert given.get("tasks", [""])[0].rstrip("/") in ("tasks", "./tasks", "/app/tasks"), given
assert given.get("agent") in (["claude-agent-acp"], ["claude"]), given
assert sorted(given.get("model", [])) == ["anthropic/claude-haiku-4-5", "anthropic/claude-sonnet-4-6"], given
assert given.get("trials") == ["3"] and given.get("sandbox") == ["docker"], given
assert given.get("job") == ["haiku-or-sonnet"] and float(given.get("cost", ["0"])[0]) == 20, given
assert compare[1:3] == ["eval", "compare"], compare
assert [Path(word).name for word in compare[3:] if not word.startswith("-")] == ["haiku-or-sonnet"], compare
