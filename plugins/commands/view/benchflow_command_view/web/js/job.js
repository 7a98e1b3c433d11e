// One job: what it says, what it ran with, its rollouts.

async function jobPage(route) {
  const jid = route.parts[1];
  let doc = await get(`job/${jid}`);
  let table = new Table(doc);
  const [head, overview, body, panels, liveBox] = [h("div", {}), h("div", { class: "overview" }), h("div", { class: "tab-body" }), h("div", { class: "panels" }), h("div", {})];
  const page = { title: doc.name, crumbs: [["Jobs", "/jobs"], [doc.name, `/job/${jid}`]] };
  let tab = null;
  let view = null;
  const state = { ...route.query };

  const changed = () => replaceQuery(`/job/${jid}`, state);
  const drawHead = () => {
    fill(head, jobHead(doc));
    fill(overview, jobOverview(doc, table, jid));
  };
  const show = (name, query) => {
    if (query && name === "rollouts") Object.assign(state, { q: "", outcome: "", reason: "", task: "", sort: state.sort }, query);
    if (view && view.dispose) view.dispose();
    tab = name;
    view = null;
    for (const one of tabs.children) one.setAttribute("aria-current", one.dataset.tab === name ? "page" : "false");
    if (name === "grid") {
      const grid = taskGrid(jid, table);
      fill(body, grid.node);
      view = grid.start();
    } else if (name === "reasons") {
      fill(body, reasonsView(doc, table, jid));
    } else if (name === "settings") {
      fill(body, settingsView(doc));
    } else {
      view = new RolloutTable(body, jid, table, state, changed);
    }
  };
  const tabs = h("nav", { class: "tabs", "aria-label": "Views of the job" },
    [["rollouts", "Rollouts"], ["grid", "Tasks × trials"], ["reasons", "Failures"], ["settings", "Settings"]].map(([name, title]) =>
      h("a", { to: name === "rollouts" ? `/job/${jid}` : `/job/${jid}/${name}`, "data-tab": name }, title)));
  page.node = h("div", { class: "page" }, head, liveBox, overview, tabs, body, panels);
  page.start = () => {
    drawHead();
    show(route.parts[2] || "rollouts", null);
    performance.mark("rows");
    panelsInto(panels, `panels/${jid}`);
    if (doc.running || !doc.finished) page.stop = live(jid, update);
  };
  const refresh = pace(async () => {
    doc = await get(`job/${jid}`, { fresh: true });
    table = new Table(doc);
    drawHead();
    if (tab === "rollouts") view.update(table); else show(tab, null);
  }, 1500);
  let mark = null;
  const update = (told) => {
    drawLive(liveBox, told, jid);
    const now = JSON.stringify(told.mark) + told.running;
    if (mark !== null && mark !== now) refresh();
    mark = now;
  };
  page.key = `job/${jid}`;
  page.go = (next) => show(next.parts[2] || "rollouts", next.query);
  page.move = (by) => view && view.move && view.move(by);
  page.filter = () => { const box = document.getElementById("filter"); if (box) box.focus(); };
  page.dispose = () => { if (page.stop) page.stop(); if (view && view.dispose) view.dispose(); };
  return page;
}

function jobHead(doc) {
  const s = doc.summary;
  const f = doc.facts;
  const arms = Object.entries(s.arms || {});
  return [h("div", { class: "page-head" }, h("h1", {}, doc.name), doc.running ? badge("running") : !doc.finished && badge("unfinished"),
    h("span", { class: "grow" }), arms.length > 1 && link(`/compare/${doc.id}`, "Compare arms"),
    button("JSON", () => showJson(doc.name, get(`job/${doc.id}`).then(({ columns, ...rest }) => rest)), { class: "chip quiet" })),
  h("div", { class: "card score-card" },
    arms.length > 1 ? h("div", { class: "big" }, plainTable(["Arm", "Score", "95 % interval", "Scored"], arms.map(([name, arm]) => [name, h("strong", {}, arm.scored ? percent(arm.score_ratio) : "–"), arm.scored && arm.score_interval ? `${percent(arm.score_interval[0])} to ${percent(arm.score_interval[1])}` : "", `${arm.scored}/${arm.total}`]))) :
    h("div", { class: "big" }, h("div", { class: "value" }, s.scored ? percent(s.score_ratio) : "–"), h("div", { class: "soft" }, s.scored ? "passed among the scored" : "nothing is scored yet"), scoreBar(s),
      s.scored > 0 && s.score_interval && h("div", { class: "soft" }, `95 % interval ${percent(s.score_interval[0])} to ${percent(s.score_interval[1])}`),
      s.scored > 0 && s.unscored > 0 && h("div", { class: "soft" }, `with the unscored, between ${percent(s.score_bounds[0])} and ${percent(s.score_bounds[1])}`)),
    h("div", { class: "middle-column" }, outcomeBar(countsOf(doc)),
      h("ul", { class: "counts" }, Object.entries(countsOf(doc)).filter(([, n]) => n).map(([name, n]) => h("li", {}, h("span", { class: `dot is-${known(name)}` }), h("strong", {}, n.toLocaleString("en")), ` ${words(name)}`))),
      h("p", { class: "soft" }, `${s.scored || doc.finished ? `coverage ${percent(s.coverage)}: ` : ""}${s.scored || 0} of ${count(s.total || 0, "rollout")} scored, ${count(s.tasks || doc.tasks || 0, "task")}`,
        has(s.mean_reward) && `; mean reward ${amount(s.mean_reward)}${has(s.mean_reward_error) ? ` ± ${amount(s.mean_reward_error)}` : ""}`),
      passesText(s) && h("p", { class: "soft" }, passesText(s)), jobNotes(s).map((note) => h("p", { class: "note" }, note))),
    facts([["Agent", listed(f.agent)], ["Model", listed(f.model)], ["Sandbox", listed(f.sandbox)], ["Dataset", listed(f.dataset)],
      ["Duration", s.elapsed_sec ? duration(s.elapsed_sec) : null], ["Cost", used(s, "total_cost_usd", money)], ["Tokens", used(s, "total_tokens", amount)], ["Started", when(doc.started)], ["Core", listed(f.core)]]),
    Object.keys(f.plugins || {}).length > 0 && fold(count(Object.keys(f.plugins).length, "plugin"), () => plainTable(["Plugin", "Version", "Rollouts"],
      Object.entries(f.plugins).map(([name, n]) => [...splitOnce(name, "="), n]))))];
}

// A sum over rollouts, and over how many where others did not say.
function used(summary, name, form) {
  const value = summary[name];
  const [known, seen] = [summary[`${name}_known`], (summary.total || 0) - ((summary.unscored_by_kind || {})["not-run"] || 0)];
  if (!has(value) || (!value && !known)) return "";
  return form(value) + (known < seen ? ` (known for ${known} of ${seen})` : "");
}

// Solved in at least one, and in each, of k trials.
function passesText(s) {
  const told = (name, values) => Object.entries(values || {}).map(([k, one]) => `${name}${k} ${percent(one.value)}`).join(", ");
  if (Object.keys(s.pass_at_k || {}).length < 2) return "";
  return [told("pass@", s.pass_at_k), told("pass^", s.pass_hat_k)].filter(Boolean).join("; ");
}

// What one has to know before one quotes the score.
function jobNotes(s) {
  const substituted = (s.image_fidelity || {}).substituted || 0;
  return [s.stopped && `Stopped: ${typeof s.stopped === "string" ? s.stopped : jsonText(s.stopped)}`,
    substituted > 0 && `${substituted === s.total ? "All" : substituted} ran on a substituted image: not comparable with exact ones.`,
    s.contested > 0 && `${count(s.contested, "rollout")} contested: the score is ${Object.entries(s.contested_scores || {}).map(([choice, value]) => `${percent(value)} ${choice}`).join(", ")}.`,
    (s.drift || []).length > 0 && `Resumed with changes: ${s.drift.map((d) => (typeof d === "string" ? d : jsonText(d))).join("; ")}`,
    (s.flaky_tasks || []).length > 0 && `${count(s.flaky_tasks.length, "task")} passed in some trials and failed in others.`].filter(Boolean);
}

function splitOnce(text, mark) {
  const at = text.indexOf(mark);
  return at < 0 ? [text, ""] : [text.slice(0, at), text.slice(at + 1)];
}

function jobOverview(doc, table, jid) {
  const all = table.all();
  const points = [];
  for (const row of all) {
    const [x, y] = [table.number("seconds", row), table.number("cost", row)];
    if (!Number.isNaN(x) && !Number.isNaN(y)) points.push([x, y, table.text("outcome", row)]);
  }
  return h("div", { class: "plots" },
    histogram("Reward", table.values("reward", all), amount, { unit: true }), histogram("Time", table.values("seconds", all), duration),
    histogram("Cost", table.values("cost", all), money), scatter("Time and cost", points, duration, money), topReasons(table, jid));
}

function reasonCounts(table) {
  const found = new Map();
  for (let row = 0; row < table.length; row += 1) {
    const reason = table.text("reason", row);
    const outcome = table.text("outcome", row);
    if (!reason && outcome !== "failed") continue;
    const name = reason || "";
    if (!found.has(name)) found.set(name, []);
    found.get(name).push(row);
  }
  return [...found].sort((a, b) => b[1].length - a[1].length);
}

function reasonLink(jid, reason) {
  return reason ? link(`/job/${jid}?reason=${encodeURIComponent(reason)}`, reason) : link(`/job/${jid}?outcome=failed`, "scored below 1");
}

function topReasons(table, jid) {
  const found = reasonCounts(table);
  if (!found.length) return null;
  return h("figure", { class: "plot reasons" }, h("figcaption", {}, "Failures by reason"),
    h("ul", {}, found.slice(0, 5).map(([reason, rows]) => h("li", {}, h("strong", {}, rows.length), " ", reasonLink(jid, reason))), found.length > 5 && h("li", {}, link(`/job/${jid}/reasons`, `${found.length - 5} more`))));
}

function reasonsView(doc, table, jid) {
  const found = reasonCounts(table);
  if (!found.length) return h("p", { class: "card" }, "Nothing failed.");
  return h("div", {}, found.map(([reason, rows]) => h("section", { class: "card" },
    h("h2", {}, reasonLink(jid, reason), h("span", { class: "soft" }, ` ${count(rows.length, "rollout")}`)),
    h("ul", { class: "examples" }, rows.slice(0, 12).map((row) => h("li", {}, badge(table.text("outcome", row)), " ", link(`/rollout/${jid}/${table.text("rollout", row)}`, table.text("name", row)), " ", h("span", { class: "soft lines" }, table.text("error", row) || `reward ${amount(table.number("reward", row))}`)))),
    rows.length > 12 && h("p", { class: "soft" }, `and ${rows.length - 12} more`))));
}

function settingsView(doc) {
  return h("section", { class: "card" }, h("h2", {}, "What was asked for"), pre(jsonText(doc.settings), "settings of the job"), h("p", { class: "soft mono" }, doc.path));
}
