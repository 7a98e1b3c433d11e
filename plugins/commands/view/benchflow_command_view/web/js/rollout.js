// One rollout, or a session file: conversation, verifier, files, model traffic, raw JSON.

async function rolloutPage(route) {
  const [, jid, rid] = route.parts;
  const where = `${jid}/${rid}`;
  let doc = await get(`rollout/${where}`, { fresh: true });
  const [head, strip, body, panels, waits] = [h("div", {}), h("div", {}), h("div", { class: "tab-body" }), h("div", { class: "panels" }), h("div", {})];
  const page = { title: doc.name, key: `rollout/${where}`, crumbs: doc.session ? [[doc.name, `/rollout/${where}`]] : [["Jobs", "/jobs"], [doc.job_name, `/job/${jid}`], [doc.name, `/rollout/${where}`]] };
  let steps = null;
  let tab = "";
  let wanted = -1;
  const openCall = (number) => showCall(where, number);
  const goStep = (n) => { if (location.hash === `#/rollout/${where}/step/${n}`) { open("conversation"); steps.goTo(n); } else location.hash = `/rollout/${where}/step/${n}`; };
  const tabs = h("nav", { class: "tabs", "aria-label": "Views of the rollout" });
  const drawTabs = () => fill(tabs, rolloutTabs(doc).map(([name, title]) => h("a", { to: name === "conversation" ? `/rollout/${where}` : `/rollout/${where}/${name}`, "data-tab": name, "aria-current": name === tab ? "page" : "false" }, title)));

  const open = (name, argument) => {
    if (name === "conversation" && tab === name) return;
    if (steps) { steps.dispose(); steps = null; }
    tab = name;
    drawTabs();
    if (name === "verifier") fill(body, verifierView(doc));
    else if (name === "files") filesView(body, doc, where, argument);
    else if (name === "traffic") fill(body, trafficView(doc, openCall));
    else if (name === "raw") fill(body, rawView(doc, where));
    else steps = conversation(body, doc, where, openCall, goStep);
  };
  const drawStrip = () => { fill(head, rolloutHead(doc)); fill(strip, timeline(doc.timeline, goStep)); drawTabs(); };
  page.node = h("div", { class: "page" }, head, waits, strip, tabs, body, panels);
  page.go = (next) => {
    if (next.parts[3] === "step") {
      const n = Number(next.parts[4]) || 0;
      wanted = n >= doc.steps && !doc.complete ? n : -1; // it may not have been read yet
      open("conversation");
      steps.goTo(n);
    } else open(next.parts[3] || "conversation", next.parts[4]);
  };
  page.start = () => {
    drawStrip();
    page.go(route);
    if (!doc.session && doc.complete) panelsInto(panels, `panels/${where}`); // else when the log has been read
    if (doc.running || !doc.complete) page.stop = live(where, update);
  };
  const refresh = pace(async () => { doc = await get(`rollout/${where}`, { fresh: true }); drawStrip(); if (!doc.running && doc.complete && page.stop) { page.stop(); fill(waits); panelsInto(panels, `panels/${where}`); } }, 1500);
  let changes = 0;
  const update = (told) => {
    fill(waits, told.waits && waitingLine(told.waits));
    if (told.changes !== changes) {
      changes = told.changes;
      if (steps) steps.grow(told.steps, told.from);
      refresh();
      if (wanted >= 0 && told.steps > wanted && steps) { steps.goTo(wanted); wanted = -1; }
    } else if (!told.running && told.complete) refresh();
  };
  page.move = (by) => steps && steps.move(by);
  page.filter = () => { const box = document.getElementById("find"); if (box) box.focus(); };
  page.talkOnly = () => { const box = document.getElementById("talk-only"); if (box && steps) box.click(); };
  page.foldAll = (on) => steps && steps.foldAll(on);
  page.raw = () => steps && steps.current >= 0 && showJson(`Step ${steps.current}`, get(`step/${where}/${steps.current}`));
  page.sibling = (by) => siblingRollout(jid, rid, by);
  page.dispose = () => { if (page.stop) page.stop(); if (steps) steps.dispose(); };
  return page;
}

function rolloutTabs(doc) {
  if (doc.session) return [["conversation", `Conversation ${doc.steps.toLocaleString("en")}`]];
  const tests = (doc.result.tests || []).length;
  return [["conversation", `Conversation ${doc.steps.toLocaleString("en")}`], ["verifier", tests ? `Verifier ${tests}` : "Verifier"], ["files", `Files ${doc.files.length}`], ["traffic", doc.traffic.length ? `Model traffic ${doc.traffic.length}` : "Model traffic"], ["raw", "Raw JSON"]];
}

function rewardText(rewards) {
  return Object.entries(rewards).map(([k, v]) => (k === "reward" ? amount(v) : `${k} ${amount(v)}`)).join(", ");
}

function rolloutHead(doc) {
  const r = doc.result;
  const used = r.agent_result || {};
  const lost = Object.entries(doc.not_understood || {});
  const problem = (key) => {
    if (!r[key]) return null;
    const info = r[`${key}_info`] || {};
    return h("div", { class: "card problem" }, h("strong", {}, [key.replace("_", " "), info.kind && ` · ${info.kind}:${info.code}`]), h("p", { class: "lines" }, r[key]), info.remedy && h("p", { class: "soft" }, info.remedy));
  };
  return [h("div", { class: "page-head" }, h("h1", {}, r.task_name || doc.task || doc.name), doc.outcome && badge(doc.outcome), contestedBadge(r), r.trial && h("span", { class: "soft" }, `trial ${r.trial}`), h("span", { class: "grow" }), h("span", { class: "soft mono small" }, doc.name)),
    lost.length > 0 && h("div", { class: "card problem" }, h("strong", {}, "Not everything in this file is understood"), h("ul", {}, lost.map(([what, n]) => h("li", {}, `${what}: ${n} ×`)))),
    problem("error"), problem("verifier_error"), contestedViews(doc),
    h("div", { class: "card about" }, facts([
      ["Reward", r.rewards ? rewardText(r.rewards) : doc.session || doc.running ? null : "unscored"],
      ["Agent", r.agent], ["Model", r.model], ["Sandbox", r.sandbox], ["Arm", r.arm], ["Time", duration((r.timing || {}).total)], ["Prompts", r.n_prompts], ["Tool calls", r.n_tool_calls], ["Tokens", amount(used.total_tokens)], ["Cost", money(used.cost_usd)],
      ["Image", r.image_fidelity], ["Verifier isolation", r.verifier_isolation], ["Flags", (r.flags || []).join(", ")], ["Format", doc.session ? doc.format : null], ["Steps", doc.session ? doc.steps : null], ["Attempt", r.attempt > 1 ? r.attempt : null]]),
      doc.attempts.length > 0 && h("p", { class: "soft" }, "Attempts: ", doc.attempts.map((a, i) => [i ? ", " : "", a.name === doc.name ? h("strong", {}, a.name) : link(`/rollout/${doc.job}/${a.id}`, a.name)])),
      Object.keys(r.roles || {}).length > 1 && h("p", { class: "soft" }, "Roles: ", Object.entries(r.roles).map(([role, one], i) => [i ? "; " : "", h("strong", {}, role), ` ${[one.agent, one.model].filter(Boolean).join(", ")}`])),
      (r.notices || []).map((notice) => h("p", { class: "soft small" }, notice)))];
}

function conversation(body, doc, where, openCall, goStep) {
  const find = h("input", { type: "search", id: "find", placeholder: "Find in the conversation", "aria-label": "Find in the conversation" });
  const told = h("span", { class: "soft", role: "status" });
  find.addEventListener("keydown", async (event) => {
    if (event.key !== "Enter" || !find.value) return;
    told.textContent = "looking …";
    const n = await view.find(find.value, !event.shiftKey);
    told.textContent = n === null ? "not found" : `step ${n}`;
  });
  const only = button("Talk and tools only", () => { view.showTalkOnly(!talkOnly); only.setAttribute("aria-pressed", String(talkOnly)); }, { class: "chip", id: "talk-only", "aria-pressed": String(talkOnly) });
  const turns = doc.turns.length > 1 ? h("nav", { class: "outline", "aria-label": "Turns" }, outlineOf(doc.turns, where)) : null;
  const feed = h("div", { class: "feed", role: "feed", "aria-label": "Steps", "aria-busy": "false" });
  fill(body, h("div", { class: "filters" }, find, told, h("span", { class: "grow" }), only, button("Unfold all", () => view.foldAll(true), { class: "chip" }), button("Fold all", () => view.foldAll(false), { class: "chip" })),
    h("div", { class: turns ? "with-outline" : "" }, turns, doc.steps ? feed : h("p", { class: "card" }, doc.running ? "Nothing has happened yet." : "There is no event log here.", feed)));
  const view = new StepsView(feed, { where, count: doc.steps, page: doc.page, openCall, several: new Set(doc.turns.map((t) => t.role)).size > 1 });
  return view;
}

function outlineOf(turns, where) {
  const shown = turns.slice(0, 400);
  let scene = null;
  const items = [];
  for (const turn of shown) {
    if (turn.scene && turn.scene !== scene) { scene = turn.scene; items.push(h("li", { class: "scene" }, scene)); }
    items.push(h("li", {}, h("a", { to: `/rollout/${where}/step/${turn.n}` }, `${turn.turn ?? ""} ${turn.role && turn.role !== "user" ? turn.role : turn.says || "turn"}`, h("span", { class: "soft" }, ` ${has(turn.end) ? duration(turn.end - turn.at) : ""}`))));
  }
  return h("ol", {}, items, turns.length > shown.length && h("li", { class: "soft" }, `and ${turns.length - shown.length} more`));
}

function verifierView(doc) {
  const tests = doc.result.tests || [];
  const findings = doc.result.findings || [];
  const steps = doc.result.step_results || [];
  const empty = !tests.length && !findings.length && !doc.verifier.length;
  return [empty && h("p", { class: "card" }, doc.running ? "The verifier has not run yet." : "The verifier left nothing."),
    steps.length > 0 && h("section", { class: "card" }, h("h2", {}, "Steps"), plainTable(["Step", "Rewards", "Error"], steps.map((s) => [s.name, s.rewards ? rewardText(s.rewards) : "unscored", (s.error || s.verifier_error || {}).message || ""]))),
    tests.length > 0 && h("section", { class: "card" }, h("h2", {}, `Tests: ${tests.filter((t) => t.status === "passed").length} of ${tests.length} passed`),
      h("ul", { class: "tests" }, tests.slice(0, 2000).map((t) => h("li", {}, h("span", { class: `status is-${t.status === "passed" ? "passed" : t.status === "skipped" ? "waiting" : "failed"}` }, t.status), " ", h("span", { class: "mono" }, t.name), has(t.score) && h("span", { class: "soft" }, ` ${amount(t.score)}`), t.message && fold("message", () => pre(t.message, "message of the test"), { open: t.status !== "passed" && t.message.length < 2000 }))))),
    doc.verifier.map((file) => h("section", { class: "card" }, h("h2", { class: "mono" }, file.name), file.text ? pre(file.text, file.name) : h("p", { class: "soft" }, "It is empty."), file.cut > 0 && h("p", { class: "soft" }, `${bytes(file.cut)} more: see the files`))),
    findings.length > 0 && h("section", { class: "card" }, h("h2", {}, `Findings ${findings.length}`), plainTable(["Code", "Path", "Action", "Why"], findings.map((f) => [f.code ?? "", f.path ?? "", f.action ?? "", f.why ?? ""])))];
}

function filesView(body, doc, where, chosen) {
  const shown = h("div", { class: "file" });
  const items = doc.files.map((file) => h("li", {}, h("a", { to: `/rollout/${where}/files/${file.id}`, "aria-current": file.id === chosen ? "true" : "false" }, file.path), h("span", { class: "soft" }, ` ${bytes(file.size)}`)));
  fill(body, h("div", { class: "with-outline" }, h("nav", { class: "outline files", "aria-label": "Files" }, h("ul", {}, items), doc.more && h("p", { class: "soft" }, "There are more files than are listed.")), shown));
  if (!chosen) { fill(shown, h("p", { class: "card soft" }, doc.files.length ? "Choose a file." : "There is no file.")); return; }
  fill(shown, h("p", { class: "soft" }, "Loading …"));
  get(`file/${where}/${chosen}`, { fresh: true }).then((file) => fill(shown, fileView(file))).catch((error) => fill(shown, h("p", { class: "problem" }, error.message)));
}

function fileView(file) {
  const head = h("h2", { class: "mono" }, file.path, h("span", { class: "soft" }, ` ${bytes(file.size)}`));
  if (file.image) return h("section", { class: "card" }, head, picture(file.image, file.path));
  if (file.binary) return h("section", { class: "card" }, head, h("p", { class: "soft" }, "Not a text."));
  return h("section", { class: "card" }, head, pre(prettyJson(file), file.path), file.tail && [h("p", { class: "soft" }, file.left_out ? `… ${bytes(file.left_out)} are left out …` : "…"), pre(file.tail, `end of ${file.path}`)]);
}

function prettyJson(file) {
  if (!file.path.endsWith(".json") || file.tail || file.size > 500000) return file.text;
  try { return jsonText(JSON.parse(file.text)); } catch { return file.text; }
}

function rawView(doc, where) {
  const { timeline: drawn, ...rest } = doc;
  const named = doc.files.filter((f) => /^(result|config|lock|timing|sandbox|prompts)\.json$|^(events|rewards)\.jsonl$|^trajectory\//.test(f.path));
  return [h("p", {}, named.map((f) => [link(`/rollout/${where}/files/${f.id}`, f.path), "  "])),
    h("section", { class: "card" }, h("h2", {}, "result.json"), copyButton(jsonText(rest.result)), pre(jsonText(rest.result), "result.json")),
    h("section", { class: "card" }, h("h2", {}, "config.json"), pre(jsonText(rest.config), "config.json"))];
}

async function siblingRollout(jid, rid, by) {
  if (jid === "session") return;
  const doc = await get(`job/${jid}`);
  const column = doc.columns.rollout;
  const at = column.rows.findIndex((n) => column.texts[n] === rid);
  const next = column.rows[at + by];
  if (next !== undefined) location.hash = `/rollout/${jid}/${column.texts[next]}`;
}
