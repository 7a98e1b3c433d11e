"""Is a converted task still the task it was?

--mode full          every task of the clone is converted and compared with its source; asks no model
--mode eval-parity   the same work, judged as the original judges it and by our verifier on the converted task
--mode side-by-side  two agents on the same converted tasks, Harvey LAB's own loop being one of them

Without a clone at --harvey-root, the small tasks in sample/ are taken, and the result says so.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import tomllib
import urllib.error
import urllib.request
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from xml.sax.saxutils import escape

HERE: Final = Path(__file__).resolve().parent
CLONE: Final = Path(".cache/datasets/harveyai/harvey-labs")
_KEYS: Final = {
    "ANTHROPIC_API_KEY": "anthropic/claude-sonnet-4-6",
    "GEMINI_API_KEY": "gemini/gemini-3.1-flash-lite-preview",
    "OPENAI_API_KEY": "openai/gpt-5.5",
}
"""Whose key is set, in this order, judges unless --judge says otherwise."""
_PLACES: Final = {
    "anthropic": ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "https://api.anthropic.com"),
    "gemini": ("GEMINI_API_KEY", "GOOGLE_GEMINI_BASE_URL", "https://generativelanguage.googleapis.com"),
    "openai": ("OPENAI_API_KEY", "OPENAI_BASE_URL", "https://api.openai.com/v1"),
}


class Refused(Exception):
    """It cannot be done here: one line."""


def _converter() -> Any:
    """By its path: its name is that of a package."""
    spec = importlib.util.spec_from_file_location("harvey_lab_converter", HERE / "benchflow.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


source = _converter()


# full


def full(tasks: Sequence[Any], scratch: Path) -> dict[str, Any]:
    options = source.Options()
    differences = []
    for task in tasks:
        folder = source.convert(task, scratch / "tasks", options)
        differences += [f"{task.id}: {what}" for what in _differences(task, folder)]
    done = _bench("tasks", "check", str(scratch / "tasks"), "--json")
    if done.returncode:
        differences.append(f"bench tasks check: {_last(done)}")
    return {
        "tasks": len(tasks),
        "criteria": sum(len(task.criteria) for task in tasks),
        "documents": sum(len(task.documents()) for task in tasks),
        "areas": sorted({task.area for task in tasks}),
        "differences": differences,
        "agree": not differences,
    }


def _differences(task: Any, folder: Path) -> Iterator[str]:
    """Read from the source's own file again, and not from what the converter made of it."""
    data = json.loads((task.folder / "task.json").read_text("utf-8"))
    if not (folder / "instruction.md").read_text("utf-8").startswith(data["instructions"].rstrip()):
        yield "the instruction is another"
    rubric = json.loads((folder / "tests/rubric.json").read_text("utf-8"))
    for key in ("title", "match_criteria"):
        if [one[key] for one in data["criteria"]] != [one[key] for one in rubric["criteria"]]:
            yield f"the criteria differ in {key}"
    if [len(one.get("deliverables") or ()) for one in data["criteria"]] != [
        len(one["deliverables"]) for one in rubric["criteria"]
    ]:
        yield "the criteria differ in their deliverables"
    if rubric["title"] != data["title"] or rubric["scoring"] != "all-or-nothing":
        yield "title or scoring is another"
    if _digests(task.folder / "documents") != _digests(folder / "environment/documents"):
        yield "the documents differ"
    config = tomllib.loads((folder / "task.toml").read_text("utf-8"))
    if config["metadata"]["source_task"] != task.id:
        yield "task.toml names another task"


def _digests(folder: Path) -> dict[str, str]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


# eval-parity


def eval_parity(tasks: Sequence[Any], scratch: Path, judge: str, bench: Sequence[str]) -> dict[str, Any]:
    """Work that meets every other criterion, and no work at all: each judged twice."""
    rows = []
    for task in tasks:
        if odd := [name for name in task.deliverables if Path(name).suffix not in _WRITERS]:
            rows.append({"task": task.id, "skipped": f"no way to write {odd[0]} here"})
            continue
        for share, kept in (("half", task.criteria[::2]), ("none", ())):
            work = {name: "\n".join(one.match_criteria for one in kept) for name in task.deliverables or ["output.md"]}
            theirs = {one.id: _original_verdict(task, one, work, judge) for one in task.criteria}
            ours = _our_verdicts(task, work, scratch / f"{task.name}-{share}", judge, bench)
            rows.append(
                {
                    "task": task.id,
                    "work": share,
                    "criteria": len(theirs),
                    "same": sum(theirs[name] == ours["verdicts"].get(name) for name in theirs),
                    "original_score": float(all(theirs.values())),
                    "score": ours["reward"],
                }
            )
    tried = [row for row in rows if "criteria" in row]
    total, same = (sum(row[key] for row in tried) for key in ("criteria", "same"))
    scores = all(row["original_score"] == row["score"] for row in tried)
    agree = bool(tried) and same == total and scores
    return {"judge": judge, "rows": rows, "criteria": total, "same": same, "agree": agree}


def _original_verdict(task: Any, one: Any, work: Mapping[str, str], judge: str) -> bool:
    """A criterion by the original's published rule: title, the deliverables it names, what a pass takes."""
    shown = "\n\n".join(f"## {name}\n{work[name] or '(empty)'}" for name in one.deliverables or work)
    asked = (
        f"Task: {task.title}\n\nCriterion: {one.title}\n{one.match_criteria}\n\nOutput of the agent:\n{shown}\n\n"
        'Does the output meet the criterion? Answer with JSON alone: {"verdict": "pass" | "fail", "reasoning": "…"}'
    )
    said = _ask(judge, asked)
    try:
        verdict = json.loads(said[said.find("{") : said.rfind("}") + 1])["verdict"].lower()
    except (ValueError, KeyError, AttributeError, TypeError):
        verdict = ""
    if verdict not in ("pass", "fail"):
        raise Refused(f"{judge} gave no verdict on {task.id} {one.id}: {said[:100]!r}")
    return bool(verdict == "pass")


def _our_verdicts(task: Any, work: Mapping[str, str], scratch: Path, judge: str, more: Sequence[str]) -> dict[str, Any]:
    """A whole run: an agent that lays the files down, the box, the verifier."""
    folder = source.convert(task, scratch, source.Options(judge=judge, tools=False))
    ready = folder / "environment/documents/.ready"
    ready.mkdir(parents=True)
    for name, text in work.items():
        _WRITERS[Path(name).suffix](ready / name, text)
    script = f"- run: cp {source.WORKSPACE}/documents/.ready/* {source.WORKSPACE}/output/"
    argv = ["-t", str(folder), "-a", "scripted", "--agent-option", f"script={script}", *more]
    [result] = _run(argv, scratch / "jobs")
    if result["rewards"] is None:
        raise Refused(f"{task.id} has no score: {result.get('verifier_error') or result.get('error')}")
    verdicts = {test["name"].split(":")[0]: test["status"] == "passed" for test in result["tests"]}
    return {"reward": result["rewards"]["reward"], "verdicts": verdicts}


def _ask(model: str, text: str) -> str:
    """Straight to the provider, past everything of ours."""
    provider, name = model.split("/", 1)
    key, place, standard = _PLACES[provider]
    base, secret = (os.environ.get(place) or standard).rstrip("/"), os.environ[key]
    said = [{"role": "user", "content": text}]
    if provider == "anthropic":
        url, headers = f"{base}/v1/messages", {"x-api-key": secret, "anthropic-version": "2023-06-01"}
        body: dict[str, Any] = {"model": name, "max_tokens": 2048, "messages": said}
    elif provider == "gemini":
        url, headers = f"{base}/v1beta/models/{name}:generateContent", {"x-goog-api-key": secret}
        body = {"contents": [{"role": "user", "parts": [{"text": text}]}]}
    else:
        url, headers = f"{base}/chat/completions", {"authorization": f"Bearer {secret}"}
        body = {"model": name, "messages": said}
    request = urllib.request.Request(url, json.dumps(body).encode(), {"content-type": "application/json", **headers})
    try:
        with urllib.request.urlopen(request, timeout=300) as response:
            value = json.load(response)
        if provider == "anthropic":
            return "".join(part.get("text", "") for part in value["content"])
        if provider == "gemini":
            return "".join(part.get("text", "") for part in value["candidates"][0]["content"]["parts"])
        return str(value["choices"][0]["message"]["content"])
    except (OSError, ValueError, KeyError, IndexError, urllib.error.URLError) as error:
        raise Refused(f"{model} gave no answer: {error}") from error


def _write_plain(file: Path, text: str) -> None:
    file.write_text(text, "utf-8")


def _write_docx(file: Path, text: str) -> None:
    lines = "".join(f"<w:p><w:r><w:t>{escape(line)}</w:t></w:r></w:p>" for line in text.splitlines())
    space = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    body = f'<w:document xmlns:w="{space}"><w:body>{lines}</w:body></w:document>'
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("word/document.xml", body)


def _write_xlsx(file: Path, text: str) -> None:
    cells = "".join(f'<row><c t="inlineStr"><is><t>{escape(line)}</t></is></c></row>' for line in text.splitlines())
    space = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    parts = {
        "xl/workbook.xml": f'<workbook xmlns:r="{space}"><sheets><sheet name="1" r:id="r1"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": '<R><R Id="r1" Target="worksheets/sheet1.xml"/></R>',
        "xl/worksheets/sheet1.xml": f"<worksheet><sheetData>{cells}</sheetData></worksheet>",
    }
    with zipfile.ZipFile(file, "w") as archive:
        for name, part in parts.items():
            archive.writestr(name, part)


_WRITERS: Final = {".docx": _write_docx, ".xlsx": _write_xlsx, ".md": _write_plain, ".txt": _write_plain}


# side-by-side


def side_by_side(tasks: Sequence[Any], scratch: Path, given: argparse.Namespace, judge: str) -> dict[str, Any]:
    options = source.Options(judge=judge, scoring="proportional", tools=not given.bare)
    for task in tasks:
        source.convert(task, scratch / "tasks", options)
    model = None if given.model == "" else given.model or judge
    arms: dict[str, dict[str, float | None]] = {}
    for agent in given.agents:
        argv = ["-t", str(scratch / "tasks"), "-a", agent, *(["-m", model] if model else []), *given.bench]
        results = _run(argv, scratch / f"jobs-{agent}")
        arms[agent] = {result["task_name"]: (result["rewards"] or {}).get("reward") for result in results}
    rows = [{"task": task.name, **{agent: arms[agent].get(task.name) for agent in arms}} for task in tasks]
    scored = [row for row in rows if None not in row.values()]
    means = {agent: sum(row[agent] for row in scored) / len(scored) if scored else None for agent in arms}
    return {"judge": judge, "model": model, "rows": rows, "mean": means, "complete": len(scored) == len(rows)}


# what all of them need


def _bench(*argv: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "benchflow_core.cli.main", *argv]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def _last(done: subprocess.CompletedProcess[str]) -> str:
    lines = [line for line in done.stderr.splitlines() if line.strip()] or ["no word of why"]
    return next((line for line in lines if line.lower().startswith("error")), lines[-1])


def _run(argv: Sequence[str], jobs: Path) -> list[dict[str, Any]]:
    done = _bench("eval", "create", *argv, "--jobs-dir", str(jobs), "--job-name", "parity", "--json")
    folders = sorted((jobs / "parity").glob("*/result.json"))
    if not folders:
        raise Refused(f"bench eval create: {_last(done)}")
    return [json.loads(file.read_text("utf-8")) for file in folders]


def _judge(given: argparse.Namespace) -> str:
    """Known to be reachable by its key alone; nothing is asked for it."""
    judge: str | None = given.judge or next((model for key, model in _KEYS.items() if os.environ.get(key)), None)
    if judge is None:
        raise Refused(f"{given.mode} asks a model: set one of {', '.join(_KEYS)}, and --judge for another model.")
    provider = judge.split("/")[0]
    if provider not in _PLACES or "/" not in judge:
        raise Refused(f"--judge {judge}: expected one of {', '.join(f'{name}/MODEL' for name in _PLACES)}.")
    if not os.environ.get(key := _PLACES[provider][0]):
        raise Refused(f"{given.mode} asks {judge}: set {key}.")
    return judge


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mode", choices=("full", "eval-parity", "side-by-side"), required=True)
    parser.add_argument("--harvey-root", type=Path, help=f"a clone of harveyai/harvey-labs; default: {CLONE}")
    parser.add_argument("--include", action="append", default=[], metavar="GLOB", help="only these tasks")
    parser.add_argument("--most", type=int, default=3, help="how many tasks, where a model is asked; default: 3")
    parser.add_argument("--judge", help="provider/model; by default one whose key is set")
    parser.add_argument("--agents", nargs="+", default=["harvey-lab-harness", "gemini"], help="for side-by-side")
    parser.add_argument("--model", help="of the agents; by default the judge's; '' for agents that take none")
    parser.add_argument("--bare", action="store_true", help="boxes without tools for office files")
    parser.add_argument("--output", type=Path, help="write the result there, as JSON")
    parser.add_argument("--bench", nargs=argparse.REMAINDER, default=[], help="the rest goes to bench eval create")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    given = _parser().parse_args(argv)
    try:
        judge = "" if given.mode == "full" else _judge(given)
        root = given.harvey_root or (CLONE if CLONE.is_dir() else HERE / "sample")
        tasks = source.find_tasks(root, given.include)
        if not tasks:
            raise Refused(f"no task matches {', '.join(given.include)}.")
        with tempfile.TemporaryDirectory(prefix="harvey-lab-") as scratch:
            if given.mode == "full":
                found = full(tasks, Path(scratch))
            elif given.mode == "eval-parity":
                found = eval_parity(tasks[: given.most], Path(scratch), judge, given.bench)
            else:
                found = side_by_side(tasks[: given.most], Path(scratch), given, judge)
    except (Refused, source.SourceError, OSError) as error:
        print(f"parity_test.py: {error}", file=sys.stderr)
        return 1
    own = root.resolve() == HERE / "sample"
    found = {"mode": given.mode, "source": "sample/" if own else str(root), "at": _now(), **found}
    text = json.dumps(found, indent=2, ensure_ascii=False)
    if given.output:
        given.output.write_text(f"{text}\n", "utf-8")
    print(text)
    return 0 if found.get("agree", found.get("complete")) else 1


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


if __name__ == "__main__":
    sys.exit(main())
