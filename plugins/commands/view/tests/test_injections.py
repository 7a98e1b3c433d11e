"""Whatever a run says is text: a corpus of injections in every field, in a real browser."""

from __future__ import annotations

import json

import pytest

from .conftest import make_rollout, unscored

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]

CORPUS = [
    "<script>alert(1)</script>",
    "</script><script>alert(2)</script>",
    "<img src=x onerror=alert(3)>",
    "<svg onload=alert(4)><animate onbegin=alert(5) attributeName=x dur=1s>",
    "<iframe srcdoc='<script>parent.alert(6)</script>'></iframe>",
    "<a href=javascript:alert(7)>click</a>",
    "javascript:alert(8)",
    "[click](javascript:alert(9)) ![x](http://attacker.invalid/p.png)",
    "data:text/html,<script>alert(10)</script>",
    "<meta http-equiv=refresh content='0;url=http://attacker.invalid/'>",
    "<base href=http://attacker.invalid/>",
    "<link rel=stylesheet href=http://attacker.invalid/x.css><style>@import 'http://attacker.invalid/y.css'</style>",
    "<form action=http://attacker.invalid/><button autofocus onfocus=alert(11)>x</button></form>",
    "<object data=http://attacker.invalid/></object><embed src=http://attacker.invalid/>",
    '" onmouseover="alert(12)" x="',
    "' autofocus onfocus='alert(13)",
    "<!--<script>alert(14)//--></script>",
    "{{constructor.constructor('alert(15)')()}} ${alert(16)} <%= alert(17) %>",
    "<math><mtext><table><mglyph><style><img src=x onerror=alert(18)>",
    "<template shadowrootmode=open><script>alert(19)</script></template>",
    "\x1b[2J\x1b[1;1H\x1b]0;owned\x07\x1b]8;;http://attacker.invalid\x07link\x1b]8;;\x07",
    "\x1b]52;c;b3duZWQ=\x07\x9b31m\x90q\x9c",
    "user\u202etxt.exe\u2066 \u2067admin\u2069 \u200f\u061c",
    "a\u0000b\ufeffc\u2028d\u2029e\ud83d lonely",
    "__proto__",
    "constructor",
    "../../../../etc/passwd",
    "# <script>alert(20)</script>\n**<img src=x onerror=alert(21)>** `<svg onload=alert(22)>`",
    "```html\n<script>alert(23)</script>\n```\n~~~\n</pre><script>alert(24)</script>\n~~~ [a](javascript:alert(25))",
    "`" * 3000 + "**" * 3000 + "\n```\n" * 500,
    "<svg xmlns='http://www.w3.org/2000/svg'><a href='javascript:alert(26)'><text>x</text></a><foreignObject>"
    "<iframe src=http://attacker.invalid/></foreignObject></svg>",
    "jAvAsCrIpT&colon;alert(27) \tjava\nscript:alert(28) vbscript:x data:image/svg+xml,<svg onload=alert(29)>",
    "\x1b[?1049h\x1b[8m hidden \x1b[28m\x1b]1337;File=name=x:AAAA\x07\x1bP+q544e\x1b\\\x1b^pm\x1b\\\x1b_apc\x1b\\\r over",
    "\u2028\u2029\u202d\u2066\u2067\u2068 abc \u2069\u202c\u200b\u200d\u00ad\U000e0041\U000e0042 tags \u115f\u3164",
    "zalgo" + "\u0301" * 5000,
    "hasOwnProperty",
    "toString",
    "?q=x&outcome=<b>#/rollout/../..%2f%2e%2e",
    "A" * 300_000,
    "\n" * 3000,
    "<b>" * 20_000,
]


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """Each of the corpus in every place that comes from an agent, a tool, a task or a file name."""
    job = tmp_path_factory.mktemp("hostile") / "jobs" / "hostile"
    events = [{"kind": "phase_started", "data": {"phase": "<script>alert('phase')</script>"}}]
    for number, bad in enumerate(CORPUS):
        place = {"scene": bad[:200], "role": bad[:200], "turn": 1, "session": bad[:200]}
        call = {"toolCallId": f"{number}{bad[:50]}", "title": bad, "kind": bad[:100], "status": "pending"}
        events += [
            {"kind": "turn_started", **place, "data": {"prompt": bad}},
            {"kind": "agent_message_chunk", **place, "data": {"content": {"type": "text", "text": bad}}},
            {"kind": "agent_thought_chunk", **place, "data": {"content": {"type": "text", "text": bad}}},
            {
                "kind": "tool_call",
                **place,
                "data": {**call, "rawInput": {bad[:100]: bad}, "locations": [{"path": bad[:300]}]},
            },
            {
                "kind": "tool_call_update",
                **place,
                "data": {
                    "toolCallId": call["toolCallId"],
                    "status": "completed",
                    "rawOutput": {"stdout": bad},
                    "content": [
                        {"type": "content", "content": {"type": "text", "text": bad}},
                        {"type": "diff", "path": bad[:300], "oldText": bad, "newText": bad + "x"},
                        {
                            "type": "content",
                            "content": {"type": "image", "mimeType": "image/svg+xml", "data": bad[:100]},
                        },
                        {"type": "content", "content": {"type": "image", "mimeType": "image/png", "data": bad[:100]}},
                    ],
                },
            },
            {
                "kind": "tool_call_update",
                **place,
                "data": {
                    "toolCallId": call["toolCallId"],
                    "_meta": {"terminal_output": {"data": bad}, "terminal_exit": {"exit_code": number}},
                },
            },
            {
                "kind": "permission_request",
                **place,
                "data": {
                    "toolCall": {"toolCallId": f"p{number}", "title": bad[:100], "rawInput": {"command": bad}},
                    "options": [{"optionId": "x", "name": bad[:200], "kind": bad[:50]}],
                    "outcome": {"outcome": "selected", "optionId": "x"},
                },
            },
            {"kind": "elicitation_request", **place, "data": {"message": bad, "response": bad[:100]}},
            {"kind": "outbox_message", **place, "data": {"from": bad[:100], "to": bad[:100], "content": bad}},
            {"kind": "reward", "data": {"tag": bad[:100], "value": bad[:100]}},
            {"kind": "plan", **place, "data": {"entries": [{"content": bad, "status": bad[:50]}]}},
            {"kind": "error", "data": {"kind": bad[:50], "code": bad[:50], "message": bad}},
            {"kind": bad[:100], "data": {bad[:50]: bad}},
            {"kind": "turn_finished", **place, "data": {"stop_reason": bad[:100]}},
        ]
        tests = [{"name": bad[:5000], "status": bad[:50], "message": bad, "score": None}]
        findings = [{"code": bad[:100], "path": bad[:300], "action": bad[:50], "why": bad[:1000]}]
        more = {"task": bad[:2000], "tests": tests, "findings": findings, "notices": [bad[:2000]], "flags": [bad[:100]]}
        more |= {"rewards": {"reward": 0.5, bad[:200]: 1.0}, "image_fidelity": bad[:100]}
        more |= {"roles": {bad[:100]: {"agent": bad[:100], "model": bad[:100]}, "other": {}}}
        more |= {"agent": bad[:100], "model": bad[:100], "arm": bad[:100], "error": bad[:2000], "trial": number}
        folder = make_rollout(job, f"rollout-{number}__00000000", **more)
        (folder / "verifier").mkdir()
        (folder / "verifier" / "test-stdout.txt").write_bytes(bad.encode("utf-8", "surrogatepass") + b"\xff\xfe\x80")
        name = bad[:60].replace("/", "_").replace("\x00", "").encode("utf-8", "surrogatepass")
        with open(bytes(folder / "verifier") + b"/" + b"f " + name + b".html", "wb") as file:
            file.write(bad.encode("utf-8", "surrogatepass"))
    whole = make_rollout(job, "everything__00000000", events, **unscored("agent", "<script>alert('code')</script>"))
    with (whole / "events.jsonl").open("ab") as log:
        log.write(
            b'\xff\xfe not json \x80\n{"kind": ["no", "text"], "data": 5}\n[]\n"text"\n{"kind": "tool_call", "data": null}\n'
        )
    (whole / "trajectory").mkdir()
    exchanges = [
        {
            "request": {
                "body": {
                    "system": bad,
                    "messages": [{"role": bad[:50], "content": bad}],
                    "tools": [{"name": bad[:100]}, {"function": {"name": bad[:100]}}],
                }
            },
            "response": {
                "body": {"choices": [{"message": {"content": bad, "tool_calls": [{"function": {"name": bad[:100]}}]}}]}
            },
            "metadata": {"provider_model": bad[:100], "role": bad[:100], "call_purpose": bad[:100]},
            "error": {"type": bad[:50], "message": bad[:500]},
        }
        for bad in CORPUS
    ]
    lines = "".join(json.dumps(one) + "\n" for one in exchanges)
    (whole / "trajectory" / "llm_trajectory.jsonl").write_text(lines)
    return job


def check(seen, url):
    """Nothing ran, nothing was asked for elsewhere, and nothing in the document came from data but text."""
    assert seen.complaints == [] and seen.outside(url) == []
    made = seen.page.evaluate("""() => {
        const bad = [];
        for (const element of document.querySelectorAll('main *, #drawer *, header *')) {
            const name = element.tagName.toLowerCase();
            if (/^(script|iframe|object|embed|base|meta|link|style|form|template|math|animate)$/.test(name)) bad.push(name);
            for (const attribute of element.attributes) {
                if (/^on|^srcdoc$|^action$|^formaction$/.test(attribute.name)) bad.push(attribute.name);
                if (attribute.name === 'href' && !attribute.value.startsWith('#/')) bad.push(attribute.value);
                if (attribute.name === 'src' && !attribute.value.startsWith('data:image/png;base64,')) bad.push(attribute.value);
            }
        }
        return bad; }""")
    assert made == []
    unseen = seen.page.evaluate(
        "/[\\u0000-\\u0008\\u001b\\u00ad\\u115f\\u3164\\u200b\\u202a-\\u202e\\u2066-\\u2069\\u200f\\u{e0000}-\\u{e007f}]|\\p{M}{10}/u.test(document.body.innerText + document.title)"
    )
    assert not unseen, "a character that hides or reorders others is on the page"


def browse(seen, url):
    page = seen.open(f"{url}#/job/hostile", ".rows .tr")
    check(seen, url)
    for tab in ("grid", "reasons", "settings"):
        page.goto(f"{url}#/job/hostile/{tab}")
        page.wait_for_selector(".tab-body > *")
        check(seen, url)
    page.goto(f"{url}#/rollout/hostile/everything__00000000")
    page.wait_for_selector(".feed .type-tool")
    for _ in range(40):
        page.evaluate(
            "document.querySelectorAll('.feed details').forEach((d) => { d.open = true; }); window.scrollBy(0, 2500)"
        )
        page.wait_for_timeout(15)
    check(seen, url)
    page.goto(f"{url}#/rollout/hostile/everything__00000000/traffic")
    page.locator(".tab-body button").first.click()
    page.wait_for_selector("#drawer details")
    page.evaluate("document.querySelectorAll('#drawer details').forEach((d) => { d.open = true; })")
    check(seen, url)
    for number in (0, 3, 4, 20, 22, 23, 27, 30, 32, 33, 38):
        for tab in ("verifier", "files", "raw"):
            page.goto(f"{url}#/rollout/hostile/rollout-{number}__00000000/{tab}")
            page.wait_for_selector(".tab-body > *")
        page.goto(f"{url}#/rollout/hostile/rollout-{number}__00000000/files")
        page.locator(".outline a", has_text=".html").first.click()
        page.wait_for_selector(".file section")
        check(seen, url)


def test_nothing_runs_on_the_served_page(watched, viewer, hostile):
    url = viewer(hostile).url
    browse(watched(), url)


def test_nothing_runs_in_an_exported_file(watched, viewer, hostile, tmp_path, view_env):
    import subprocess

    from .conftest import BENCH

    target = tmp_path / "hostile.html"
    subprocess.run([BENCH, "view", hostile, "--export", target], env=view_env, check=True, capture_output=True)
    assert b"alert(" not in target.read_bytes(), "data is encoded: it cannot even look like markup"
    browse(watched(), target.as_uri())


def test_the_policy_would_stop_a_script_that_got_in(watched, shared_viewer):
    """The second wall: even markup that somehow was inserted cannot run."""
    seen = watched()
    page = seen.open(shared_viewer.url)
    blocked = page.evaluate("""() => {
        const errors = [];
        try { document.body.innerHTML = '<img src=x onerror=alert(1)>'; } catch (error) { errors.push(error.name); }
        const script = document.createElement('script');
        try { script.textContent = 'window.ran = true'; document.body.append(script); } catch (error) { errors.push(error.name); }
        return [errors, window.ran === true]; }""")
    assert blocked[0][0] == "TypeError" and blocked[1] is False
    stopped = page.evaluate("fetch('http://attacker.invalid/').then(() => 'went', () => 'stopped')")
    assert stopped == "stopped" and any("Content Security Policy" in text for text in seen.complaints)
