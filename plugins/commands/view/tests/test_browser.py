"""The flows, clicked through in a real Chromium."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from .conftest import CONTESTED, TALK, WHERE, make_rollout, write_events

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]


def text(page, selector):
    return re.sub(r"\s+", " ", page.inner_text(selector))


def test_from_the_list_to_a_step(watched, shared_viewer):
    seen = watched()
    page = seen.open(shared_viewer.url)
    assert text(page, "h1") == "Jobs"
    row = page.locator("tbody tr", has_text="before")
    told = re.sub(r"\s+", " ", row.inner_text())
    assert "66.7% 20.8 to 93.9 6/6 4 passed, 2 failed some provider/model-1 local $0.12 4.5 s" in told
    row.get_by_text("1.0, 1 plugin").click()
    assert "agent:some 1.0" in row.inner_text()
    row.get_by_role("link").click()
    page.wait_for_selector(".rollouts")
    assert "95 % interval" in text(page, ".score-card") and "4 passed 2 failed" in text(page, ".counts")
    assert page.locator(".plot").count() >= 4
    page.get_by_role("link", name="beta").first.click()
    page.wait_for_selector(".feed .type-tool .diff")
    assert "Write the file, please." in text(page, ".feed")
    assert "ls /app" in text(page, ".type-tool .title") and "1.5 s" in text(page, ".type-tool .head")
    assert "- two" in page.inner_text(".diff .gone") and "+ three" in page.inner_text(".diff .new")
    assert page.locator(".type-thought details[open]").count() == 0
    page.click(".type-thought summary")
    assert "I should look first." in text(page, ".type-thought .prose")
    assert page.locator(".timeline .lane-tool").count() == 1
    assert not seen.complaints and not seen.outside(shared_viewer.url)


def test_what_the_verifier_said_and_the_files(watched, shared_viewer):
    page = watched().open(f"{shared_viewer.url}#/rollout/before/beta__00000001/verifier")
    assert "1 of 2 passed" in text(page, ".tab-body") and "expected 3, got 4" in text(page, ".tests")
    assert page.inner_text("[aria-label='verifier/test-stdout.txt']") == "collected 2 items\nFAILED test_b\n"
    page.click("text=Files")
    page.click("text=artifacts/notes.txt")
    page.wait_for_selector(".file pre")
    assert page.inner_text(".file pre") == "a note\n"
    page.click("text=Raw JSON")
    assert '"rollout_name": "beta__00000001"' in page.inner_text(".tab-body pre >> nth=0")


def test_a_contested_rollout_shows_what_it_depends_on_and_how_to_settle_it(watched, viewer, tmp_path):
    folder = make_rollout(tmp_path / "job", "a__00000001", TALK, rewards={"reward": 0.0}, verification=CONTESTED)
    seen = watched()
    page = seen.open(f"{viewer(tmp_path / 'job').url}#/rollout/job/a__00000001", "#contested")
    told = text(page, ".contested")
    assert "as left 1" in told and "clean 0" in told and "/usr/local/bin/checker modified" in told
    assert "+ exit 0" in page.inner_text(".contested .diff .new") and "- grep" in page.inner_text(
        ".contested .diff .gone"
    )
    assert f"bench eval settle {folder} --as-left --because" in text(page, ".contested .settle >> nth=0")
    assert not seen.complaints


def test_model_traffic_stands_beside_the_step_it_led_to(watched, shared_viewer):
    page = watched().open(f"{shared_viewer.url}#/rollout/before/beta__00000001", ".feed .chip >> text=model call 0")
    assert "ls /app" in page.locator(".step", has_text="model call 0").inner_text()
    page.click("text=model call 0")
    page.wait_for_selector("#drawer pre")
    drawer = text(page, "#drawer")
    assert "the whole answer" in drawer and "the whole question" in drawer and "m-1" in drawer
    page.keyboard.press("Escape")
    assert page.locator("#drawer").is_hidden()
    page.click(".tabs >> text=Model traffic 1")
    page.click(".tab-body a >> text=#3")
    page.wait_for_selector(".step.current")
    assert page.url.endswith("/step/3")


def test_a_link_leads_to_a_step_and_its_json(watched, shared_viewer):
    page = watched().open(f"{shared_viewer.url}#/rollout/before/alpha__00000001/step/4", ".step.current")
    assert "All done." in page.inner_text(".step.current")
    page.keyboard.press("r")
    page.wait_for_selector("#drawer pre")
    assert json.loads(page.inner_text("#drawer pre"))["text"] == "All done."


def test_find_looks_through_what_the_page_cut_off(watched, viewer, tmp_path):
    at = [event["kind"] for event in TALK].index("agent_message_chunk")
    long = {**TALK[at], "data": {"content": {"type": "text", "text": "x " * 5000 + "needle in the hay"}}}
    make_rollout(tmp_path / "j", "t__00000001", [*TALK[:at], long, *TALK[at + 1 :]])
    page = watched().open(f"{viewer(tmp_path / 'j').url}#/rollout/j/t__00000001", ".feed .step")
    assert "needle" not in page.inner_text(".feed")
    page.fill("#find", "NEEDLE in")
    page.keyboard.press("Enter")
    page.wait_for_selector(".filters >> text=/step \\d/")
    page.fill("#find", "no such word")
    page.keyboard.press("Enter")
    page.wait_for_selector(".filters >> text=not found")


def test_the_table_sorts_and_filters_and_keeps_it_in_the_address(watched, shared_viewer):
    page = watched().open(f"{shared_viewer.url}#/job/before", ".rows .tr")
    page.fill("#filter", "beta")
    assert page.locator(".rows .tr").count() == 2 and "2 of 6 rollouts" in text(page, ".filters")
    page.fill("#filter", "")
    page.get_by_role("button", name="Reward").click()
    assert page.locator(".rows .tr").first.inner_text().startswith("failed")
    page.click(".filters >> text=failed 2")
    assert page.locator(".rows .tr").count() == 2
    assert "outcome=failed" in page.url and "sort=reward" in page.url
    page.reload()
    page.wait_for_selector(".rows .tr")
    assert page.locator(".rows .tr").count() == 2


def test_failures_are_grouped_by_their_typed_reason(watched, shared_viewer):
    page = watched().open(f"{shared_viewer.url}#/job/after", ".rows .tr")
    assert "2 provider:overloaded" in text(page, ".plot.reasons")
    page.click(".plot.reasons >> text=provider:overloaded")
    page.wait_for_selector(".filters >> text=reason: provider:overloaded")
    assert page.locator(".rows .tr").count() == 2
    page.click(".tabs >> text=Failures")
    assert "provider:overloaded 2 rollouts" in text(page, ".tab-body")


def test_tasks_by_trial(watched, shared_viewer):
    page = watched().open(f"{shared_viewer.url}#/job/before/grid", ".grid-row .cell")
    lines = [re.sub(r"\s+", " ", line) for line in page.locator(".rows .grid-row").all_inner_texts()]
    assert lines == ["beta 0/2 ✗ ✗", "alpha 2/2 ✓ ✓", "gamma 2/2 ✓ ✓"]
    page.locator(".rows .cell").first.click()
    page.wait_for_selector(".feed .step")
    assert "beta__0000000" in page.url


def test_compare_shows_what_flipped_first(watched, shared_viewer):
    page = watched().open(shared_viewer.url, "tbody input")
    assert page.get_by_role("button", name="Compare").is_disabled()
    for box in ("compare before", "compare after"):
        page.get_by_label(box).check()
    page.get_by_role("button", name="Compare 2").click()
    page.wait_for_selector(".verdict")
    rows = page.locator("tbody tr").all_inner_texts()
    assert "solved" in rows[0] and "alpha" in rows[0] and len(rows) == 1
    page.click("text=all 3")
    assert [row.split()[-1] for row in page.locator("tbody tr").all_inner_texts()] and page.locator(
        "tbody tr"
    ).count() == 3
    assert "could not be paired" in text(page, ".verdict")


def test_the_keyboard_is_enough(watched, shared_viewer):
    page = watched().open(f"{shared_viewer.url}#/job/before", ".rows .tr")
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_selector(".feed .type-tool")
    first = page.url
    page.keyboard.press("j")
    page.wait_for_selector(".step.current")
    page.keyboard.press("]")
    page.wait_for_function(f"location.href !== {json.dumps(first)}")
    page.keyboard.press("?")
    page.wait_for_selector(".keys")
    page.keyboard.press("Escape")
    page.keyboard.press("u")
    page.wait_for_selector(".rollouts")
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "filter"
    page.keyboard.press("Escape")
    page.keyboard.press("t")
    assert page.evaluate("document.documentElement.dataset.theme") == "light"
    page.keyboard.press("t")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    assert page.evaluate("getComputedStyle(document.documentElement).backgroundColor") == "rgb(17, 19, 22)"


PAGES = [
    "jobs",
    "job/before",
    "job/before/grid",
    "job/after/reasons",
    "compare/before+after",
    "rollout/before/beta__00000001",
]
PAGES += [f"rollout/before/beta__00000001/{tab}" for tab in ("verifier", "files", "traffic", "raw")]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(watched, shared_viewer, scheme):
    seen = watched(color_scheme=scheme)
    # axe itself is put in by the debugger: the page's own policy would not let it.
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed")
    source = Path(axe.__file__).with_name("axe.min.js")
    found = {}
    for route in PAGES:
        page = seen.open(f"{shared_viewer.url}?{route}#/{route}")
        page.wait_for_selector("h1")
        page.wait_for_timeout(150)
        page.evaluate(source.read_text())
        report = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
        found |= {(route, v["id"], v["nodes"][0]["html"][:200]): v["help"] for v in report["violations"]}
    assert found == {}


def test_a_phone_scrolls_down_and_never_sideways(watched, shared_viewer):
    seen = watched(viewport={"width": 390, "height": 800}, is_mobile=True, has_touch=True)
    for route in PAGES:
        page = seen.open(f"{shared_viewer.url}?{route}#/{route}", "h1")
        page.wait_for_timeout(100)
        assert page.evaluate("document.documentElement.scrollWidth") <= 391, route


def test_a_rollout_that_runs_updates_by_itself(watched, viewer, tmp_path):
    job = tmp_path / "jobs" / "now"
    folder = make_rollout(job, "task__00000001", TALK[:5])
    (folder / "result.json").unlink()
    served = viewer(folder)
    seen = watched()
    page = seen.open(served.url, ".waiting")
    assert "waiting: coder on a tool: ls /app" in text(page, ".waiting") and text(page, "h1") == "task"
    assert [page.locator(f".timeline .lane-{lane}").count() for lane in ("phase", "turn", "tool")] == [1, 1, 1], "open"
    write_events(folder / "events.jsonl", [*TALK[:7], {"kind": "notice", "data": {"text": "news"}}])
    page.wait_for_selector(".feed >> text=All done.")
    assert "the model" in text(page, ".waiting")
    page.wait_for_selector(".type-tool .status.is-passed")
    make_rollout(job, "task__00000001", TALK)
    page.wait_for_selector(".page-head .is-passed")
    page.wait_for_selector(".waiting", state="detached")
    page.wait_for_selector(".panel td >> text=1.5")  # as it is now, not as it was when the page opened
    assert not seen.complaints


def test_a_running_job_says_who_waits_on_what(watched, viewer, tmp_path):
    job = tmp_path / "jobs" / "now"
    make_rollout(job, "one__00000001", TALK)
    second = make_rollout(job, "two__00000001", TALK[:5])
    (second / "result.json").unlink()
    row = {"rollout": "two__00000001", "task": "two", "arm": None, "phase": "execute", "turn": 1, "tool_calls": 1}
    state = {"time": 0, "left": 1, "tokens": 5, "cost_usd": 0.0, "stopping": None}
    live = {**state, "running": [{**row, "seconds": 3.0, "quiet_sec": 0.1, "tokens": 5}]}
    (job / "live.json").write_text(json.dumps(live))
    page = watched().open(viewer(job).url, ".live table")
    assert "two execute 1 1 3.0 s coder on a tool: ls /app for" in text(page, ".live table")
    assert page.locator(".rows .tr").count() == 2 and text(page, ".counts") == "1 passed 1 unfinished"
    make_rollout(job, "two__00000001", TALK, rewards={"reward": 0.0})
    (job / "live.json").unlink()
    (job / "summary.json").write_text(json.dumps({"job_name": "now", "total": 2}))
    page.wait_for_selector(".counts >> text=1 failed")
    page.wait_for_selector(".live", state="detached")


def test_what_is_unknown_is_not_shown_as_nothing(watched, viewer, tmp_path):
    """No tokens, no cost and no share of what is not scored yet; a sum says over how many it was made."""
    jobs = tmp_path / "jobs"
    for name in ("silent", "begun", "partly"):
        for number in range(2):
            make_rollout(jobs / name, f"task-{number}__00000001", TALK)
    for folder in (*jobs.glob("silent/*"), *jobs.glob("begun/*"), jobs / "partly" / "task-0__00000001"):
        result = json.loads((folder / "result.json").read_text())
        result["agent_result"] |= {"total_tokens": None, "cost_usd": None}
        (folder / "result.json").write_text(json.dumps(result))
    older = {"job_name": "silent", "total": 2, "total_tokens": 0, "total_cost_usd": 0.0}
    (jobs / "silent" / "summary.json").write_text(json.dumps(older))
    for result in jobs.glob("begun/*/result.json"):
        result.unlink()
    seen, served = watched(), viewer(jobs)
    for job, cost, tokens in (("silent", False, False), ("begun", False, False), ("partly", True, True)):
        page = seen.open(f"{served.url}#/job/{job}", f"h1 >> text={job}")
        head = text(page, ".score-card")
        assert ("COST" in head.upper(), "TOKENS" in head.upper()) == (cost, tokens), head
        assert (" 0.0%" in head, "0 of 2 rollouts scored" in head) == (False, job == "begun"), head
    assert "$0.0200 (known for 1 of 2)" in head and "1500 (known for 1 of 2)" in head
    assert "$0 " not in text(seen.open(f"{served.url}#/jobs", "h1 >> text=Jobs"), "tbody")
    assert not seen.complaints


def test_panels_of_plugins_are_on_the_page(watched, shared_viewer):
    page = watched().open(f"{shared_viewer.url}#/rollout/before/alpha__00000001", ".panel")
    assert "Tools" in text(page, ".panel h2") and "benchflow-command-results" in text(page, ".panel h2")
    assert "execute 1 0 1.5" in text(page, ".panel table")


def test_large_jobs_and_long_trajectories(watched, viewer, many_files):
    """10,000 rollouts sort and filter; 100,000 events scroll while the page and the server hold little."""
    job = many_files / "jobs" / "large"
    template = make_rollout(job, "task-0__00000000", [])
    row = json.loads((template / "result.json").read_text())
    for number in range(1, 10_000):
        folder = job / f"task-{number % 1000}__{number:08x}"
        folder.mkdir()
        rewards = {"reward": float(number % 3 == 0)}
        more = {
            "task_name": f"task-{number % 1000}",
            "rollout_name": folder.name,
            "rewards": rewards,
            "trial": number // 1000,
        }
        (folder / "result.json").write_text(json.dumps({**row, **more}))
    where = json.dumps(WHERE)[1:-1]
    moment = '"v": 1, "time": "2026-01-01T00:00:00+00:00"'
    with (template / "events.jsonl").open("w") as log:
        log.write(f'{{"kind": "turn_started", "at": 0.0, {moment}, {where}, "data": {{"prompt": "go"}}}}\n')
        for n in range(33_333):  # written as text: making dictionaries of them takes longer than showing them
            start = f'"at": {n / 10}, {moment}, {where}, "data": {{'
            call = f'"toolCallId": "{n}", "title": "command {n}", "kind": "execute", "status": "pending"'
            log.write(f'{{"kind": "tool_call", {start}{call}}}}}\n')
            log.write(f'{{"kind": "tool_call_update", {start}"toolCallId": "{n}", "status": "completed"}}}}\n')
            log.write(f'{{"kind": "agent_message_chunk", {start}"text": "said {n}"}}}}\n')
    served = viewer(job)
    seen = watched()
    seen.page.set_default_timeout(120_000)
    page = seen.open(served.url, ".rows .tr")
    assert "10,000 rollouts" in text(page, ".filters") and page.locator(".rows .tr").count() < 60
    spent = page.evaluate("""() => { const t = performance.now(); const box = document.getElementById('filter');
        box.value = 'task-77'; box.dispatchEvent(new Event('input')); return performance.now() - t; }""")
    assert "110 of 10,000 rollouts" in text(page, ".filters") and spent < 1000
    page.goto(f"{served.url}#/rollout/large/task-0__00000000")
    page.wait_for_selector(".feed .type-tool .title")
    page.wait_for_selector(".tabs >> text=Conversation 66,667", timeout=120_000)
    before, held = page.evaluate("(gc(), performance.memory.usedJSHeapSize)"), served.memory()
    for part in range(1, 25):
        page.evaluate(f"window.scrollTo(0, document.documentElement.scrollHeight * {part} / 24)")
        page.wait_for_timeout(30)
    page.wait_for_selector(".feed .step .title >> text=command 33332")
    after = page.evaluate("(gc(), performance.memory.usedJSHeapSize)")
    assert page.locator(".feed .step").count() < 120
    assert after - before < 12_000_000 and served.memory() - held < 40_000
    page.goto(f"{served.url}#/rollout/large/task-0__00000000/step/39999")
    page.wait_for_selector(".step.current .title >> text=command 19999")
    assert not seen.complaints


def test_what_the_program_keeps_for_itself_can_be_left_out(watched, shared_viewer):
    seen = watched()
    page = seen.open(f"{shared_viewer.url}#/rollout/before/beta__00000001", ".feed .type-tool")
    everything = page.locator(".feed .step:visible").count()
    page.keyboard.press("s")
    page.wait_for_selector("#talk-only[aria-pressed='true']")
    kinds = {re.search(r"type-(\w+)", c.get_attribute("class"))[1] for c in page.locator(".feed .step:visible").all()}
    assert (
        kinds == {"prompt", "thought", "tool", "message"} and page.locator(".feed .step:visible").count() < everything
    )
    page.keyboard.press("j")
    page.wait_for_selector(".step.current.type-prompt")
    page.click("#talk-only")
    assert page.locator(".feed .step:visible").count() == everything and not seen.complaints


def test_numbers_stand_under_their_names_and_one_reward_has_its_place(watched, shared_viewer):
    page = watched().open(f"{shared_viewer.url}#/rollout/before/beta__00000001/traffic", "table.plain")
    heads = {
        th.inner_text(): th.evaluate("e => getComputedStyle(e).textAlign") for th in page.locator(".plain th").all()
    }
    assert heads["In"] == heads["Out"] == "right" and heads["Model"] == "left"
    page.goto(f"{shared_viewer.url}#/job/after")
    page.wait_for_selector(".plot svg text")
    reward = page.locator(".plot", has_text="Reward").first
    assert reward.locator("svg text").all_text_contents() == ["0", "1"], "all of them are 0"


def test_markdown_becomes_type_and_commands_are_told(watched, viewer, tmp_path):
    said = "# Plan\nUse `ls`, **now**:\n\n```sh\nls -l  # not a title\n```\n~~~ open\n[x](http://elsewhere.invalid)"
    call = {"toolCallId": "c", "title": "List", "kind": "execute", "rawInput": {"command": "ls -l", "cwd": "/app"}}
    ended = {"toolCallId": "c", "status": "failed", "rawOutput": {"exit_code": 2, "stdout": "", "stderr": "no such"}}
    ask = {"toolCall": call, "options": [{"optionId": "y", "name": "Allow", "kind": "allow_once"}]}
    events = [
        {"kind": "turn_started", **WHERE, "data": {"prompt": said}},
        {"kind": "permission_request", **WHERE, "data": {**ask, "outcome": {"outcome": "selected", "optionId": "y"}}},
        {"kind": "tool_call_update", **WHERE, "data": ended},
    ]
    page = watched().open(viewer(make_rollout(tmp_path / "jobs" / "one", "t__00000001", events)).url, ".type-tool")
    assert page.inner_text(".type-prompt .heading") == "Plan" and page.inner_text(".type-prompt code") == "ls"
    assert page.locator(".type-prompt pre").all_inner_texts() == [
        "ls -l  # not a title",
        "[x](http://elsewhere.invalid)",
    ]
    assert page.inner_text(".type-prompt .prose > strong:not(.heading)") == "now"
    assert page.locator(".type-tool pre").all_inner_texts() == ["ls -l", "no such"]
    tool = text(page, ".type-tool")
    assert "exit code 2" in tool and "permission allowed once: Allow" in tool and "arguments cwd: /app" in tool
    assert "turn 1 main · coder" in text(page, ".type-prompt .head") and "main" not in text(page, ".type-tool .head")
