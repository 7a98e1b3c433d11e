"""Plugins of somebody else's in real jobs: an environment that owns its loop, and plugins that do everything wrong."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

OWN_LOOP = """
    import json
    from benchflow_core.contracts import (
        AdapterSpec, DriverSpec, Task, TaskEnvironment, VerifierSettings, VerifierSpec, VerifyResult)
    from benchflow_core.errors import RewardMissing
    from benchflow_core.hookspecs import hookimpl
    from benchflow_wires.asgi import serve_app

    class Dialect:
        name, wants = "own-loop", ()
        def parse(self, found):
            raise RewardMissing("scored from its rewards")
        def combine(self, steps):
            return {"reward": 0.0}

    def load(path):
        data = json.loads((path / "own.json").read_text())
        return Task(name=path.name, path=path, format="own-loop", instruction=data["question"], dialect=Dialect(),
                    environment=TaskEnvironment(image="any", allow_substitute=True), drive=data.get("drive"),
                    verifier=VerifierSettings(method="own-rewards", params={"answer": data["answer"]}))

    async def drive(episode, params):
        done = []
        async def app(scope, receive, send):
            body = (await receive())["body"]
            if not done:
                done.append(json.loads(body)["answer"])
                episode.reward(float(done[0] == episode.task.verifier.params["answer"]), source="own:submit")
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b"finished"})
        async with serve_app(app, "the environment") as endpoint:
            url = await episode.serve(endpoint)
            for _ in range(params["turns"]):
                if not done:
                    await episode.prompt(episode.roles[0], f"{episode.task.instruction} POST {url}/submit")
        episode.report({"answered": bool(done)})

    async def finish(episode, params):
        if "late" in episode.task.verifier.params["answer"]:
            left = await episode.sandbox.exec(["cat", "left.txt"], cwd=episode.workdir)
            episode.reward(float(left.stdout.strip()), source="own:finish")

    async def verify(context):
        lines = [json.loads(line) for line in context.trajectory.read_text().splitlines()]
        rewards = [line["data"]["value"] for line in lines if line["kind"] == "reward"]
        if not rewards:
            raise RewardMissing("nothing was submitted")
        return VerifyResult({"reward": rewards[-1]})

    @hookimpl
    def benchflow_adapter():
        return AdapterSpec(summary="own", signature="own.json", detect=lambda p: (p / "own.json").is_file(), load=load)

    @hookimpl
    def benchflow_driver():
        return DriverSpec(summary="an environment with its own loop", drive=drive, finish=finish, params={"turns": 3})

    @hookimpl
    def benchflow_verifier():
        methods = frozenset({"own-rewards"})
        return VerifierSpec(summary="the last reward", methods=methods, verify=verify, needs_box=False)
"""
ANSWERS = """
    turns:
      - - say: "Let me think."
      - - run: |
            url=$(echo {{prompt|sh}} | grep -o 'http://[^ ]*')
            python3 -c 'import sys, urllib.request as u; print(u.urlopen(sys.argv[1], b"{\\"answer\\": \\"4\\"}").read())' $url
"""
VERDICTS = {
    "nan": ('VerifyResult({"reward": float("nan")})', "gave the reward 'reward' as nan, which is no number from -2^63"),
    "text": ('VerifyResult({"reward": "1.0"})', "gave the reward 'reward' as '1.0', which is no number from -2^63"),
    "bare": ('{"reward": 1.0}', "its verify() returned a dict, not a VerifyResult"),
    "none": ("None", "its verify() returned None, not a VerifyResult"),
    "tests": ('VerifyResult({"reward": 1.0}, tests=("a",))', "its verify() returned a str, not a TestOutcome"),
    "raises": ('{}["rubric"]', "failed in verify(): KeyError: 'rubric'"),
}
VERIFIER = """
    from benchflow_core.contracts import VerifierSpec, VerifyResult
    from benchflow_core.hookspecs import hookimpl

    async def verify(context):
        return {answer}

    @hookimpl
    def benchflow_verifier():
        return VerifierSpec(summary="wrong", methods=frozenset({{"{name}"}}), verify=verify, needs_box=False)
"""
DRIVER = """
    from benchflow_core.contracts import DriverSpec
    from benchflow_core.hookspecs import hookimpl

    {how}drive(episode, params):
        raise SystemExit("enough")

    @hookimpl
    def benchflow_driver():
        return DriverSpec(summary="wrong", drive={drive})
"""
BOX = """
    import dataclasses, importlib, os
    from importlib.metadata import entry_points
    from benchflow_core.hookspecs import hookimpl

    class Wrapped:
        def __init__(self, inner):
            self.inner = inner
        def __getattr__(self, name):
            return getattr(self.inner, name)

    class Box(Wrapped):
        async def stop(self):
            await self.inner.stop()
            raise ValueError("the vendor said no")

    class Provider(Wrapped):
        async def start(self, image, request):
            if "refuse" in os.environ:
                return None
            return Box(await self.inner.start(image, request))
        async def close(self):
            await self.inner.close()
            raise ValueError("the vendor never closes")

    def cannot_tell():
        raise OSError("who knows")

    @hookimpl
    def benchflow_sandbox():
        (found,) = [e for e in entry_points(group="benchflow.sandboxes") if e.name == os.environ["LOCAL"]]
        real = importlib.import_module(found.value).benchflow_sandbox()
        return dataclasses.replace(real, open=lambda c: Provider(real.open(c)), {more})
"""
EXPORTER = """
    from benchflow_core.contracts import ExporterSpec
    from benchflow_core.hookspecs import hookimpl

    def export(record, options):
        return {made}

    @hookimpl
    def benchflow_exporter():
        return ExporterSpec(summary="an export", file_name="{file}", export=export, automatic={automatic},
                            options={{"word": "reward"}})
"""
DETECTS = """
    from benchflow_core.contracts import AdapterSpec
    from benchflow_core.hookspecs import hookimpl

    @hookimpl
    def benchflow_adapter():
        return AdapterSpec(summary="wrong", signature="x", detect=lambda path: 1 / 0, load=lambda path: None, rank=1)
"""
GATEWAY = """
    from benchflow_core.contracts import GatewaySpec
    from benchflow_core.hookspecs import hookimpl

    class Gateway:
        async def issue(self, request):
            raise ConnectionResetError("it died")
        async def close(self):
            raise KeyError("gone")

    @hookimpl
    def benchflow_gateway():
        return GatewaySpec(summary="dies", open=lambda context: Gateway(), wires=frozenset({("chat", "chat")}))
"""
Install = Callable[..., dict[str, str]]


@pytest.fixture
def install(tmp_path: Path, name) -> Install:
    """A distribution `somebodys-kit 2.5` with these modules: (kind's group, name, source)."""

    def put(*modules: tuple[str, str, str]) -> dict[str, str]:
        site = tmp_path / "site"
        info = site / "somebodys_kit-2.5.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: somebodys-kit\nVersion: 2.5\n")
        points = []
        for group, entry, source in modules:
            module = f"kit_{abs(hash(source))}"
            (site / f"{module}.py").write_text(textwrap.dedent(source))
            points.append(f"[benchflow.{group}]\n{entry} = {module}\n")
        (info / "entry_points.txt").write_text("".join(points))
        return {"PYTHONPATH": str(site), "LOCAL": name("local")}

    return put


@pytest.fixture
def own_task(tmp_path: Path) -> Callable[..., Path]:
    def write(**data: object) -> Path:
        folder = tmp_path / "own"
        folder.mkdir()
        (folder / "own.json").write_text(json.dumps({"question": "What is 2+2?", "answer": "4", **data}))
        return folder

    return write


def own_loop(install: Install) -> dict[str, str]:
    return install(*((group, "own", OWN_LOOP) for group in ("adapters", "drivers", "verifiers")))


def test_an_environment_that_owns_its_loop(bench, name, install, own_task, result_of, tmp_path):
    """The task asks for its driver, the driver serves its tools into the box, the event log is the verdict."""
    script = tmp_path / "answer.yaml"
    script.write_text(textwrap.dedent(ANSWERS))
    task, more = own_task(drive={"loop": "own:turns=2"}), own_loop(install)
    played = ("-a", name("scripted"), "--agent-option", f"script={script}", "--sandbox", name("local"))
    done = bench("eval", "create", "-t", task, *played, "--keep-state", "all", more=more)
    assert done.code == 0, done.err
    result = result_of()
    assert (result["rewards"], result["loop"]) == ({"reward": 1.0}, {"answered": True})
    assert result["n_prompts"] == 2
    lock = json.loads((result["dir"] / "lock.json").read_text())
    assert (lock["drive"]["driver"], lock["drive"]["params"]) == ("own", {"turns": 2})
    again = bench("eval", "score", result["dir"], more=more)
    assert again.code == 0 and "1" in again.out, again.out + again.err


def test_a_driver_finishes_what_an_agent_left_that_used_up_its_time(bench, name, install, own_task, result_of):
    task, more = own_task(drive={"loop": "own:turns=1"}, answer="late"), own_loop(install)
    late = "script={turns: [[{run: echo 0.25 > left.txt}, {hang: true}]]}"
    played = ("-a", name("scripted"), "--agent-option", late, "--timeout", "4", "--sandbox", name("local"))
    done = bench("eval", "create", "-t", task, *played, more=more)
    assert done.code == 0, done.err + done.out
    result = result_of()
    assert result["rewards"] == {"reward": 0.25} and "agent-timeout" in result["flags"]


def test_what_a_task_asks_of_its_driver_and_nobody_knows_is_refused(bench, name, install, own_task):
    more = own_loop(install)
    task = own_task(drive={"loop_strategy": "own"})
    done = bench("eval", "create", "-t", task, "-a", name("nop"), "--sandbox", name("local"), more=more)
    assert done.code == 1 and "wants to be driven by 'loop_strategy', which nobody knows" in done.err + done.out
    (task / "own.json").write_text(json.dumps({"question": "?", "answer": "4", "drive": {"loop": "nobodys"}}))
    done = bench("eval", "create", "-t", task, "-a", name("nop"), "--sandbox", name("local"), more=more)
    assert done.code == 1 and "Unknown driver 'nobodys'." in done.err + done.out


def test_a_verdict_that_is_none_names_its_verifier(bench, name, install, tmp_path):
    wrong = [
        ("verifiers", f"v-{key}", VERIFIER.format(name=key, answer=answer)) for key, (answer, _) in VERDICTS.items()
    ]
    adapter = OWN_LOOP.replace('method="own-rewards"', 'method=data["answer"]')
    more = install(("adapters", "own", adapter), *wrong)
    for key in VERDICTS:
        (tmp_path / "tasks" / key).mkdir(parents=True)
        (tmp_path / "tasks" / key / "own.json").write_text(json.dumps({"question": "?", "answer": key}))
    done = bench("eval", "create", "-t", tmp_path / "tasks", "-a", name("nop"), "--sandbox", name("local"), more=more)
    assert done.code == 1 and "0 of 6 rollouts could be scored" in done.out
    found = [json.loads(path.read_text()) for path in (tmp_path / "jobs").glob("*/*/result.json")]
    said = {result["task_name"]: result["verifier_error"] for result in found}
    for key, (_, message) in VERDICTS.items():
        assert f"verifier 'v-{key}' of somebodys-kit 2.5" in said[key] and message in said[key]


def test_a_gateway_that_dies_under_a_judge_is_no_verdict(bench, name, install, own_task, result_of):
    judge = VERIFIER.format(name="own-rewards", answer='await context.model("judge")')
    more = install(("adapters", "own", OWN_LOOP), ("verifiers", "judge", judge), ("gateways", "dies", GATEWAY))
    given = ("-a", name("scripted"), "--agent-option", "script=- say: x", "--sandbox", name("local"))
    given += ("-m", "openai/any", "--gateway", "dies")
    done = bench("eval", "create", "-t", own_task(), *given, more={**more, "OPENAI_API_KEY": "sk-none"})
    assert done.code == 1
    assert result_of()["error_info"]["message"] == (
        "gateway 'dies' of somebodys-kit 2.5 failed in issue(): ConnectionResetError: it died."
    )
    assert "warning: gateway 'dies' of somebodys-kit 2.5 failed in close(): KeyError: 'gone'." in done.err


@pytest.mark.parametrize(
    ("how", "drive", "message"),
    [
        ("async def ", "drive", "driver 'wrong' of somebodys-kit 2.5 failed in drive(): SystemExit: enough."),
        ("def ", "lambda episode, params: None", "driver 'wrong' of somebodys-kit 2.5: its drive() is not async."),
    ],
)
def test_a_driver_that_fails_is_named(bench, name, install, examples, result_of, how, drive, message):
    more = install(("drivers", "wrong", DRIVER.format(how=how, drive=drive)))
    given = ("-a", name("nop"), "--sandbox", name("local"), "--loop-strategy", "wrong")
    done = bench("eval", "create", "-t", examples / "hello-file", *given, more=more)
    assert done.code == 1 and done.err.count(message) == 1
    assert result_of()["error_info"] | {"details": {}} == {
        "kind": "infrastructure",
        "code": "plugin_failed",
        "message": message,
        "remedy": "This is a defect of the plugin.",
        "retryable": False,
        "details": {},
    }


def test_a_box_that_cannot_be_ended_takes_no_score_away(bench, name, install, examples, result_of):
    more = install(("sandboxes", "stubborn", BOX.format(more="default_rank=None")))
    given = ("-t", examples / "hello-file", "-a", name("oracle"), "--sandbox", "stubborn")
    done = bench("eval", "create", *given, more=more)
    assert done.code == 0 and "✓ Score: 1/1" in done.out, done.err
    assert (
        "warning: sandbox 'stubborn' of somebodys-kit 2.5 failed in close(): ValueError: the vendor never" in done.err
    )
    stopped = "sandbox 'stubborn' of somebodys-kit 2.5 failed in stop(): ValueError: the vendor said no."
    result = result_of()
    assert result["error"] is None and stopped in result["notices"]
    done = bench("eval", "create", *given, more={**more, "refuse": "1"})
    assert done.code == 1 and "sandbox 'stubborn' of somebodys-kit 2.5: its start() returned None, not a Sa" in done.err


def test_plugins_that_nobody_asked_for_do_no_harm(bench, name, install, examples, tmp_path):
    """A sandbox of the best rank that cannot tell whether it works, one without capabilities, a careless adapter."""
    more = install(
        ("sandboxes", "unsure", BOX.format(more="default_rank=-1, available=cannot_tell")),
        ("sandboxes", "unable", BOX.format(more="default_rank=None, capabilities=lambda: {}[0]")),
        ("adapters", "careless", DETECTS),
    )
    done = bench("eval", "create", "-t", examples / "hello-file", "-a", name("oracle"), more=more)
    assert done.code == 0 and "✓ Score: 1/1" in done.out, done.err
    warned = [line for line in done.err.splitlines() if line.startswith("warning")]
    assert warned == [
        "warning: adapter 'careless' of somebodys-kit 2.5 failed in detect(): ZeroDivisionError: division by zero. "
        "This is a defect of the plugin."
    ]
    listed = {row["name"]: row for row in bench("sandbox", "list", "--json", more=more).json}
    assert listed["unsure"]["reason"].startswith("sandbox 'unsure' of somebodys-kit 2.5 failed in available(): OSError")
    assert listed["unable"]["reason"].startswith("sandbox 'unable' of somebodys-kit 2.5 failed in capabilities()")
    assert listed[name("local")]["available"]
    assert bench("tasks", "check", examples / "hello-file", "--level", "runtime-capability", more=more).code == 0


def test_exporters_write_where_they_may(bench, name, install, examples, result_of, tmp_path):
    good = EXPORTER.format(
        made='str(record.result["rewards"][options["word"]]).encode()', file="own.txt", automatic=True
    )
    more = install(
        ("exporters", "good", good),
        ("exporters", "failing", EXPORTER.format(made='{}["no"]', file="failing.txt", automatic=True)),
        ("exporters", "outside", EXPORTER.format(made='b""', file="../../escaped.txt", automatic=False)),
        ("exporters", "text", EXPORTER.format(made='"text"', file="text.txt", automatic=False)),
    )
    task = ("-t", examples / "hello-file", "-a", name("oracle"), "--sandbox", name("local"))
    done = bench("eval", "create", *task, more=more)
    assert done.code == 0, done.err
    folder = result_of()["dir"]
    assert [file.name for file in (folder / "trainer").iterdir()] == ["own.txt"]
    assert (folder / "trainer" / "own.txt").read_text() == "1.0"
    assert done.err.count("exporter failing (somebodys-kit 2.5) failed:") == 1
    for form, message in (
        (
            "outside",
            "exporter 'outside' of somebodys-kit 2.5 names the file '../../escaped.txt', which is no plain name.",
        ),
        ("text", "exporter 'text' of somebodys-kit 2.5: its export() returned a str, not a bytes."),
    ):
        done = bench("eval", "export", folder.parent, "--format", form, more=more)
        assert done.code == 1 and done.err.startswith(f"error: {message}") and done.err.count("\n") == 1
    assert not list(tmp_path.rglob("escaped.txt"))
    done = bench("eval", "export", folder.parent, "--format", "good", "--output", tmp_path / "out", more=more)
    assert done.code == 0 and (tmp_path / "out" / folder.name / "own.txt").read_text() == "1.0", done.err
